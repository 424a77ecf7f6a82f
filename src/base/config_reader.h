// Typed reading of a JSON object (a model's config.json): every wrong or missing value is one
// error that names the key, what is there and what must be.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice {

// Reads keys of one object and keeps the first error; after an error every read returns its
// fallback (or zero), so that a caller reads all keys in a row and asks status() once. A key whose
// value is null counts as absent. Holds a reference to the object.
class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& object, std::string where);

  bool has(const char* key) const;
  // An integer in [low, high]. Without a fallback the key is required.
  int integer(const char* key, int low, int high, std::optional<int> fallback = std::nullopt);
  // A finite number.
  double number(const char* key, std::optional<double> fallback = std::nullopt);
  bool boolean(const char* key, std::optional<bool> fallback = std::nullopt);
  std::string text(const char* key, std::optional<std::string> fallback = std::nullopt);

  // For checks that span several keys: records the error unless there is one already.
  void fail(ErrorCode code, const std::string& message);
  Status status() const { return status_; }

 private:
  const nlohmann::json* find(const char* key, bool required);
  void wrong_type(const char* key, const nlohmann::json& value, const char* expected);

  const nlohmann::json& object_;
  std::string where_;
  Status status_;
};

}  // namespace sluice
