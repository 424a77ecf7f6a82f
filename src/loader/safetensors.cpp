#include "loader/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "loader/json_text.h"

namespace sluice::loader {

static_assert(std::endian::native == std::endian::little, "safetensors is read in place");

namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own limit
constexpr size_t kMaxDims = 16;
constexpr int kHeaderDepth = 4;  // {tensor: {shape: [..]}} and {__metadata__: {..}}

// Bits of one element; 0 for an unknown dtype.
int dtype_bits(std::string_view dtype) {
  static constexpr std::pair<std::string_view, int> kBits[] = {
      {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8},
      {"F8_E8M0", 8}, {"U16", 16}, {"I16", 16}, {"F16", 16},    {"BF16", 16},
      {"U32", 32},    {"I32", 32}, {"F32", 32}, {"U64", 64},    {"I64", 64},
      {"F64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  for (const auto& [name, bits] : kBits) {
    if (name == dtype) return bits;
  }
  return 0;
}

struct Placed {
  SafetensorsEntry entry;
  uint64_t begin = 0;
  uint64_t end = 0;
};

template <class... Args>
Error corrupt(const std::string& name, fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorCode::kCorruptFile,
                    "{}: not a sound safetensors file: {}",
                    name,
                    fmt::format(format, std::forward<Args>(args)...));
}

std::optional<uint64_t> unsigned_value(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

// shape x dtype in bytes; nullopt if it overflows or is no whole number of bytes.
std::optional<uint64_t> byte_size(const std::vector<int64_t>& shape, int bits) {
  uint64_t total = static_cast<uint64_t>(bits);
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(total, static_cast<uint64_t>(size), &total)) return std::nullopt;
  }
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

Result<Placed> read_entry(const std::string& tensor,
                          const nlohmann::json& value,
                          const std::string& file) {
  const auto malformed = [&](const char* what) {
    return corrupt(file, "tensor {} has no proper {}", tensor, what);
  };
  if (!value.is_object()) return malformed("description");
  Placed placed;
  placed.entry.name = tensor;
  const auto dtype = value.find("dtype");
  if (dtype == value.end() || !dtype->is_string()) return malformed("dtype");
  placed.entry.dtype = dtype->get<std::string>();
  const int bits = dtype_bits(placed.entry.dtype);
  if (bits == 0) return corrupt(file, "tensor {} has dtype {}", tensor, placed.entry.dtype);

  const auto shape = value.find("shape");
  if (shape == value.end() || !shape->is_array() || shape->size() > kMaxDims) {
    return malformed("shape");
  }
  for (const auto& size : *shape) {
    const auto number = unsigned_value(size);
    if (!number || *number > uint64_t(std::numeric_limits<int64_t>::max())) {
      return malformed("shape");
    }
    placed.entry.shape.push_back(static_cast<int64_t>(*number));
  }

  const auto offsets = value.find("data_offsets");
  if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2) {
    return malformed("data_offsets");
  }
  const auto begin = unsigned_value((*offsets)[0]);
  const auto end = unsigned_value((*offsets)[1]);
  if (!begin || !end || *end < *begin) return malformed("data_offsets");
  placed.begin = *begin;
  placed.end = *end;
  const auto size = byte_size(placed.entry.shape, bits);
  if (!size || *size != *end - *begin) {
    return corrupt(file,
                   "tensor {} of {} [{}] does not fill its {} bytes",
                   tensor,
                   placed.entry.dtype,
                   fmt::join(placed.entry.shape, ", "),
                   *end - *begin);
  }
  return placed;
}

Status check_cover(std::vector<Placed*> order, uint64_t data_size, const std::string& file) {
  std::sort(order.begin(), order.end(), [](const Placed* a, const Placed* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t position = 0;
  for (const Placed* placed : order) {
    if (placed->begin != position) {
      return corrupt(file,
                     "tensor {} begins at {}, but the data before it ends at {}",
                     placed->entry.name,
                     placed->begin,
                     position);
    }
    position = placed->end;
  }
  if (position != data_size) {
    return corrupt(file,
                   "its tensors take {} bytes and it holds {}; is the download complete?",
                   position,
                   data_size);
  }
  return {};
}

}  // namespace

Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes,
                                                        const std::string& name) {
  uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size) return corrupt(name, "it has {} bytes", bytes.size());
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  if (header_size > kMaxHeader || header_size > bytes.size() - sizeof header_size) {
    return corrupt(
        name, "its header is said to have {} bytes, the file has {}", header_size, bytes.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header_size,
                              header_size);
  SLUICE_TRY(const auto header, parse_json(text, name + " (header)", kHeaderDepth));
  if (!header.is_object()) return corrupt(name, "its header is no JSON object");

  std::vector<Placed> tensors;
  for (const auto& [key, value] : header.items()) {
    if (key == "__metadata__") continue;
    SLUICE_TRY(Placed placed, read_entry(key, value, name));
    tensors.push_back(std::move(placed));
  }
  const auto data = bytes.subspan(sizeof header_size + header_size);
  std::vector<Placed*> order;
  for (auto& placed : tensors) order.push_back(&placed);
  SLUICE_TRY_STATUS(check_cover(std::move(order), data.size(), name));

  std::vector<SafetensorsEntry> result;
  for (auto& placed : tensors) {
    placed.entry.data = data.subspan(placed.begin, placed.end - placed.begin);
    result.push_back(std::move(placed.entry));
  }
  return result;
}

}  // namespace sluice::loader
