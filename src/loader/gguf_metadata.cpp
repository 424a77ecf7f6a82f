#include "loader/gguf_metadata.h"

#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

namespace sluice::loader {

namespace {

template <class T>
T read_unaligned(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The double whose decimal spelling is the float's shortest one.
double shortest_double(float value) {
  char text[32];
  const auto written = std::to_chars(text, text + sizeof text, value);
  double result = value;
  std::from_chars(text, written.ptr, result);
  return result;
}

std::optional<int64_t> as_integer(const GgufValue& value) {
  if (const auto* u = std::get_if<uint64_t>(&value)) {
    if (*u <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return static_cast<int64_t>(*u);
    }
  } else if (const auto* i = std::get_if<int64_t>(&value)) {
    return *i;
  }
  return std::nullopt;
}

template <class Stored, class Wanted>
std::vector<Wanted> widen(const GgufArray& array) {
  std::vector<Wanted> result(array.count);
  for (uint64_t i = 0; i < array.count; ++i) {
    result[i] =
        static_cast<Wanted>(read_unaligned<Stored>(array.bytes.data() + i * sizeof(Stored)));
  }
  return result;
}

std::optional<std::vector<int64_t>> widen_integers(const GgufArray& array) {
  switch (array.type) {
    case GgufType::kUint8:
      return widen<uint8_t, int64_t>(array);
    case GgufType::kInt8:
      return widen<int8_t, int64_t>(array);
    case GgufType::kUint16:
      return widen<uint16_t, int64_t>(array);
    case GgufType::kInt16:
      return widen<int16_t, int64_t>(array);
    case GgufType::kUint32:
      return widen<uint32_t, int64_t>(array);
    case GgufType::kInt32:
      return widen<int32_t, int64_t>(array);
    case GgufType::kInt64:
      return widen<int64_t, int64_t>(array);
    default:
      return std::nullopt;
  }
}

}  // namespace

const char* gguf_type_name(GgufType type) {
  constexpr const char* kNames[] = {"uint8",
                                    "int8",
                                    "uint16",
                                    "int16",
                                    "uint32",
                                    "int32",
                                    "float32",
                                    "bool",
                                    "string",
                                    "array",
                                    "uint64",
                                    "int64",
                                    "float64"};
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

bool GgufMetadata::insert(std::string_view key, GgufValue value) {
  return values_.emplace(key, std::move(value)).second;
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

Error GgufMetadata::wrong_type(std::string_view key, std::string_view wanted) const {
  return make_error(ErrorCode::kCorruptFile,
                    "{}: metadata '{}' has the wrong type or range; it must be {}",
                    file_name_,
                    key,
                    wanted);
}

Error GgufMetadata::missing(std::string_view key) const {
  return make_error(ErrorCode::kCorruptFile, "{}: metadata '{}' is missing", file_name_, key);
}

Result<std::optional<int64_t>> GgufMetadata::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<int64_t>();
  if (auto result = as_integer(*value)) return result;
  return wrong_type(key, "an integer");
}

Result<std::optional<double>> GgufMetadata::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<double>();
  if (const auto* f = std::get_if<float>(value)) return std::optional(shortest_double(*f));
  if (const auto* d = std::get_if<double>(value)) return std::optional(*d);
  if (auto integer = as_integer(*value)) return std::optional(static_cast<double>(*integer));
  return wrong_type(key, "a number");
}

Result<std::optional<bool>> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional(*b);
  return wrong_type(key, "a bool");
}

Result<std::optional<std::string_view>> GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<std::string_view>();
  if (const auto* text = std::get_if<std::string_view>(value)) return std::optional(*text);
  return wrong_type(key, "a string");
}

Result<std::optional<std::vector<std::string_view>>> GgufMetadata::strings(
    std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<std::vector<std::string_view>>();
  const auto* array = std::get_if<GgufArray>(value);
  if (!array || array->type != GgufType::kString) return wrong_type(key, "an array of strings");
  std::vector<std::string_view> result(array->count);
  const std::byte* at = array->bytes.data();
  for (auto& text : result) {
    const auto length = read_unaligned<uint64_t>(at);
    text = {reinterpret_cast<const char*>(at) + sizeof length, length};
    at += sizeof length + length;
  }
  return std::optional(std::move(result));
}

Result<std::optional<std::vector<int64_t>>> GgufMetadata::integers(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<std::vector<int64_t>>();
  if (const auto* array = std::get_if<GgufArray>(value)) {
    if (auto result = widen_integers(*array)) return result;
  }
  return wrong_type(key, "an array of integers");
}

Result<std::optional<std::vector<float>>> GgufMetadata::floats(std::string_view key) const {
  const GgufValue* value = find(key);
  if (!value) return std::optional<std::vector<float>>();
  const auto* array = std::get_if<GgufArray>(value);
  if (!array || array->type != GgufType::kFloat32) return wrong_type(key, "an array of float32");
  return std::optional(widen<float, float>(*array));
}

Result<int64_t> GgufMetadata::require_integer(std::string_view key) const {
  SLUICE_TRY(auto value, integer(key));
  if (!value) return missing(key);
  return *value;
}

Result<double> GgufMetadata::require_number(std::string_view key) const {
  SLUICE_TRY(auto value, number(key));
  if (!value) return missing(key);
  return *value;
}

Result<std::string_view> GgufMetadata::require_string(std::string_view key) const {
  SLUICE_TRY(auto value, string(key));
  if (!value) return missing(key);
  return *value;
}

}  // namespace sluice::loader
