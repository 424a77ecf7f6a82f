// One tensor as it lies in a mapped checkpoint file, and how it becomes MLX arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "loader/ggml_type.h"
#include "tensor/mx.h"

namespace sluice::loader {

// Where the bytes are and what they mean. Readers have checked that they lie inside the file and
// that bytes fits shape and type.
struct StoredTensor {
  std::string name;            // Hugging Face's
  std::string source_name;     // as the file spells it, for messages
  std::vector<int64_t> shape;  // row-major, outermost first; logical for block-quantized types
  std::shared_ptr<const MappedFile> file;
  const std::byte* data = nullptr;  // inside file
  uint64_t bytes = 0;

  // Exactly one of the two says what the elements are.
  std::string dtype;  // safetensors' name: "F32", "BF16", "U32", ...; or empty
  GgmlType ggml_type = GgmlType::kUnknown;  // GGUF's type, if dtype is empty

  // llama.cpp interleaves the two rope halves of q and k rows for its `llama` family; rows are
  // put back per head of head_rows rows (0: as they are). Sits on the outermost dimension.
  int interleaved_head_rows = 0;
};

}  // namespace sluice::loader
