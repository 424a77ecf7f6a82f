#include "base/config_reader.h"

#include <cmath>

namespace sluice {

ConfigReader::ConfigReader(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object_.is_object()) {
    fail(ErrorCode::kCorruptFile,
         fmt::format("{} must be a JSON object, but is {}", where_, object_.type_name()));
  }
}

bool ConfigReader::has(const char* key) const {
  return object_.is_object() && object_.contains(key) && !object_.at(key).is_null();
}

const nlohmann::json* ConfigReader::find(const char* key, bool required) {
  if (has(key)) return &object_.at(key);
  if (required) {
    fail(ErrorCode::kNotFound, fmt::format("{} lacks the key \"{}\"", where_, key));
  }
  return nullptr;
}

void ConfigReader::wrong_type(const char* key, const nlohmann::json& value, const char* expected) {
  fail(ErrorCode::kCorruptFile,
       fmt::format("{}: \"{}\" is {}; it must be {}", where_, key, value.dump(), expected));
}

int ConfigReader::integer(const char* key, int low, int high, std::optional<int> fallback) {
  const auto* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or(0);
  const auto expected = fmt::format("an integer from {} to {}", low, high);
  if (!value->is_number_integer()) {
    wrong_type(key, *value, expected.c_str());
    return fallback.value_or(0);
  }
  // Unsigned values beyond int64 would wrap in get<int64_t>.
  const bool huge = value->is_number_unsigned() && value->get<uint64_t>() > INT32_MAX;
  if (huge || value->get<int64_t>() < low || value->get<int64_t>() > high) {
    wrong_type(key, *value, expected.c_str());
    return fallback.value_or(0);
  }
  return value->get<int>();
}

double ConfigReader::number(const char* key, std::optional<double> fallback) {
  const auto* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or(0);
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    wrong_type(key, *value, "a finite number");
    return fallback.value_or(0);
  }
  return value->get<double>();
}

bool ConfigReader::boolean(const char* key, std::optional<bool> fallback) {
  const auto* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or(false);
  if (!value->is_boolean()) {
    wrong_type(key, *value, "true or false");
    return fallback.value_or(false);
  }
  return value->get<bool>();
}

std::string ConfigReader::text(const char* key, std::optional<std::string> fallback) {
  const auto* value = find(key, !fallback);
  if (value == nullptr) return fallback.value_or("");
  if (!value->is_string()) {
    wrong_type(key, *value, "a string");
    return fallback.value_or("");
  }
  return value->get<std::string>();
}

void ConfigReader::fail(ErrorCode code, const std::string& message) {
  if (status_.ok()) status_ = Error{code, message};
}

}  // namespace sluice
