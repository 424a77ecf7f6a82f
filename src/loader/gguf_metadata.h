// GGUF key-value metadata, read without copying: strings and arrays are views into the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sluice::loader {

// Value types by their number in the file (gguf.h, enum gguf_type).
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
const char* gguf_type_name(GgufType type);

// Elements as they lie in the file; the parser has walked and checked them. Arrays of arrays are
// refused by the parser (nothing writes them).
struct GgufArray {
  GgufType type = GgufType::kUint8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// Integers are widened; float32 and float64 stay apart, since a float32 is best written to JSON by
// its own shortest decimal.
using GgufValue = std::variant<uint64_t, int64_t, float, double, bool, std::string_view, GgufArray>;

// Getters give nullopt for an absent key and kCorruptFile, naming file and key, for a value of
// another type. Views live as long as the bytes that were parsed.
class GgufMetadata {
 public:
  explicit GgufMetadata(std::string file_name = {}) : file_name_(std::move(file_name)) {}

  // False if the key is there already.
  bool insert(std::string_view key, GgufValue value);
  const GgufValue* find(std::string_view key) const;
  size_t size() const { return values_.size(); }

  // Any integer type, in the range of int64.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  // Any number; a float32 becomes the double that its shortest decimal spells (1e-05f -> 1e-05).
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string_view>> string(std::string_view key) const;
  Result<std::optional<std::vector<std::string_view>>> strings(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> integers(std::string_view key) const;
  Result<std::optional<std::vector<float>>> floats(std::string_view key) const;

  // The same with kCorruptFile for an absent key.
  Result<int64_t> require_integer(std::string_view key) const;
  Result<double> require_number(std::string_view key) const;
  Result<std::string_view> require_string(std::string_view key) const;

  const std::string& file_name() const { return file_name_; }

 private:
  Error wrong_type(std::string_view key, std::string_view wanted) const;
  Error missing(std::string_view key) const;

  std::string file_name_;
  std::map<std::string_view, GgufValue, std::less<>> values_;
};

}  // namespace sluice::loader
