// From a tensor in a mapped file to evaluated MLX arrays. Throws nothing; MLX's own exceptions
// (out of memory) become errors.
#pragma once

#include "base/result.h"
#include "loader/stored_tensor.h"
#include "loader/weight_map.h"
#include "tensor/mx.h"

namespace sluice::loader {

// A tensor of any dtype that MLX has, in that dtype. Shares the file's mapping where the backend
// and the alignment allow it, else a copy.
Result<mx::array> materialize_dense(const StoredTensor& tensor);

// A block-quantized GGUF matrix [N, K] in MLX's layout.
Result<AffineMatrix> materialize_affine(const StoredTensor& tensor);

// Whether safetensors' dtype name (or GGUF's dense type) is float32, float16 or bfloat16.
bool is_float(const StoredTensor& tensor);
// "float32", "Q4_1", "F8_E4M3": for messages and lists.
std::string element_kind(const StoredTensor& tensor);

// Whether arrays share the mapping on this build's backend: true for MLX's CPU allocator.
bool shares_mapping();

}  // namespace sluice::loader
