// Typed reading of JSON objects from outside: the first wrong value is kept as an error that has
// its JSON path, and reading goes on harmlessly after it, so that a parser is a list of fields.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "chat/types.h"
#include "server/openai/error.h"

namespace sluice::server {

// The value as an error message shows it: its JSON, cut at 40 bytes, and its type.
std::string describe(const chat::Json& value);

// A closed or open interval of numbers.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;

  bool contains(double x) const { return (low_open ? x > low : x >= low) && x <= high; }
  std::string text() const;  // "[0, 1]", "(0, 1]", "greater than 0"
};

// Reads one object. The object and the error slot must outlive it. null counts as absent.
class Fields {
 public:
  // path: of the object; empty for the body itself.
  Fields(const chat::Json& object, std::string path, std::optional<ApiError>& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  // The value of a key, or nullptr if it is absent or null.
  const chat::Json* find(std::string_view key) const;
  std::string path_of(std::string_view key) const;

  // Each leaves `out` as it is if the key is absent or its value is wrong.
  void read(std::string_view key, bool& out);
  void read(std::string_view key, std::string& out);
  void read(std::string_view key, Range range, std::optional<double>& out);
  void read(std::string_view key, int low, int high, std::optional<int>& out);

  // The value if it is an object / array, else nullptr (and an error if it is something else).
  const chat::Json* object(std::string_view key);
  const chat::Json* array(std::string_view key);

  // As above for a key that must be there; its absence is an error.
  bool require(std::string_view key);

  // Keeps the first error only.
  void fail(ApiError error) {
    if (!error_) error_ = std::move(error);
  }
  void expected(std::string_view key, std::string_view what, const chat::Json& got);

 private:
  const chat::Json& object_;
  std::string path_;
  std::optional<ApiError>& error_;
};

}  // namespace sluice::server
