// GGUF v2 and v3 container (ggml's docs/gguf.md): header, metadata, tensor table. No MLX. Checks
// every count, length, offset and size against the file before using it, so that a malformed file
// gives an error, never a crash, and never an allocation beyond a small multiple of the file's
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/ggml_type.h"
#include "loader/gguf_metadata.h"

namespace sluice::loader {

struct GgufTensor {
  std::string_view name;
  std::vector<int64_t> shape;  // row-major, outermost first: GGUF's own order reversed
  GgmlType type = GgmlType::kUnknown;
  std::span<const std::byte> data;
};

struct GgufFile {
  uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // in the file's order

  // bytes: the whole file; it must outlive the result, which points into it. name: for messages.
  // Errors: kCorruptFile says what is wrong where; kUnsupported for another version, a big-endian
  // file, one part of a split model, and a tensor type that sluice does not read (named, with the
  // tensor).
  static Result<GgufFile> parse(std::span<const std::byte> bytes, const std::string& name);
};

}  // namespace sluice::loader
