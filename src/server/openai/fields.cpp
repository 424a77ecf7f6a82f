#include "server/openai/fields.h"

#include <fmt/format.h>

#include <cmath>

namespace sluice::server {

using chat::Json;

std::string describe(const Json& value) {
  constexpr size_t kShown = 40;
  if (value.is_object() || value.is_array()) return fmt::format("an {}", value.type_name());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShown) {
    size_t cut = kShown;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    text = text.substr(0, cut) + "...";
  }
  return fmt::format("{} ({})", text, value.type_name());
}

std::string Range::text() const {
  if (std::isinf(low) && std::isinf(high)) return "a finite number";
  if (std::isinf(high)) return fmt::format("a number {} {}", low_open ? ">" : ">=", low);
  return fmt::format("a number in {}{}, {}]", low_open ? "(" : "[", low, high);
}

const Json* Fields::find(std::string_view key) const {
  const auto found = object_.find(std::string(key));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Fields::expected(std::string_view key, std::string_view what, const Json& got) {
  std::string path = path_of(key);
  std::string message = fmt::format("'{}' must be {}, not {}", path, what, describe(got));
  fail(invalid_value(std::move(path), std::move(message)));
}

bool Fields::require(std::string_view key) {
  if (find(key) != nullptr) return true;
  std::string path = path_of(key);
  std::string message = fmt::format("'{}' is missing", path);
  fail({.message = std::move(message), .param = std::move(path), .code = "missing_field"});
  return false;
}

void Fields::read(std::string_view key, bool& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return expected(key, "true or false", *value);
  out = value->get<bool>();
}

void Fields::read(std::string_view key, std::string& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return expected(key, "a string", *value);
  out = value->get<std::string>();
}

void Fields::read(std::string_view key, Range range, std::optional<double>& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number() || !range.contains(value->get<double>())) {
    return expected(key, range.text(), *value);
  }
  out = value->get<double>();
}

void Fields::read(std::string_view key, int low, int high, std::optional<int>& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  const bool too_big =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  if (!value->is_number_integer() || too_big || value->get<int64_t>() < low ||
      value->get<int64_t>() > high) {
    return expected(key,
                    high == std::numeric_limits<int>::max()
                        ? fmt::format("an integer >= {}", low)
                        : fmt::format("an integer in [{}, {}]", low, high),
                    *value);
  }
  out = value->get<int>();
}

const Json* Fields::object(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_object()) return value;
  expected(key, "an object", *value);
  return nullptr;
}

const Json* Fields::array(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return value;
  expected(key, "an array", *value);
  return nullptr;
}

}  // namespace sluice::server
