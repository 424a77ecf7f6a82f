// A checkpoint's tensors by their Hugging Face names, handed out once each: a family takes what it
// knows, ignores what it says it ignores, and finish() names every tensor that is left. GGUF
// tensors appear under Hugging Face names too, so a family has one name map for both formats.
//
// Not thread safe; the engine thread owns it. Every array that comes out is evaluated, so it may
// cross threads. Arrays either share the checkpoint file's private mapping (which lives as long as
// the last of them) or own their memory; converting happens in take(), so that of a GGUF file only
// one tensor at a time exists in both forms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "loader/quantization_config.h"
#include "loader/stored_tensor.h"
#include "tensor/mx.h"

namespace sluice::loader {

// MLX's affine layout (mlx.core.quantize): weight uint32 [N, K * bits / 32], values packed along K
// from the lowest bit up; scales, biases [N, K / group_size] of one dtype (float32, float16 or
// bfloat16); w = scale * q + bias.
struct AffineMatrix {
  mx::array weight;
  mx::array scales;
  mx::array biases;
  int bits = 0;        // 2, 3, 4, 5, 6 or 8
  int group_size = 0;  // 32, 64 or 128
};

// Dense: [N, K], float32, float16 or bfloat16.
using Matrix = std::variant<mx::array, AffineMatrix>;

// One line of `sluice inspect`. An affine module's three tensors are one entry, under its .weight.
struct TensorInfo {
  std::string name;            // "model.layers.0.mlp.up_proj.weight"
  std::string kind;            // "float32", "bfloat16", "affine 4-bit group 32", "Q4_1", ...
  std::vector<int64_t> shape;  // logical: [N, K] for a quantized matrix, not the packed width
  uint64_t bytes = 0;          // in the file
  std::filesystem::path file;
};

class WeightMap {
 public:
  // done and total: bytes of tensors in the file(s).
  using Progress = std::function<void(uint64_t done, uint64_t total)>;

  WeightMap();
  // Names must be unique (the format readers refuse duplicates). progress, if any, is called on the
  // taking thread after each tensor that is taken or ignored.
  WeightMap(std::vector<StoredTensor> tensors, QuantizationConfig quantization, Progress progress);
  ~WeightMap();
  WeightMap(WeightMap&&) noexcept;
  WeightMap& operator=(WeightMap&&) noexcept;
  WeightMap(const WeightMap&) = delete;
  WeightMap& operator=(const WeightMap&) = delete;

  // Whether the checkpoint has this tensor, taken or not. A GGUF matrix counts as its ".weight".
  bool contains(const std::string& name) const;

  // A dense tensor in its stored float dtype (float32, float16, bfloat16); GGUF norms are usually
  // float32. Errors name the tensor, its file and both shapes: kNotFound if it is missing,
  // kCorruptFile for a shape that differs, kUnsupported for a dtype that is no float (or a
  // quantized matrix), kInvalidArgument if it has been taken before.
  Result<mx::array> take(const std::string& name, const mx::Shape& expected_shape);

  // <module_path>.weight as a matrix [out_features, in_features], with .scales and .biases if they
  // are there (config's `quantization` says with which bits and group; both are checked against the
  // geometry) or the exact MLX form of a GGUF Q4_0, Q4_1 or Q8_0 matrix (group 32; see
  // ggml_repack.h for the scales' dtype). A module's own ".bias" is a vector of its own: take() it.
  Result<Matrix> take_matrix(const std::string& module_path, int out_features, int in_features);

  // Says that a tensor is left alone on purpose (e.g. rotary_emb.inv_freq). False if it is absent.
  bool ignore(const std::string& name);
  // The same for every tensor that the predicate picks and nobody has taken; returns how many.
  int ignore_if(const std::function<bool(const std::string& name)>& predicate);

  // An error that lists the tensors that nobody took or ignored (the first 20 and their number).
  Status finish() const;

  // All tensors in name order, taken or not.
  std::vector<TensorInfo> list() const;
  // Bytes of all tensors in the file(s).
  uint64_t total_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::loader
