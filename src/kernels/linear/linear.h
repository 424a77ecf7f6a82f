// y = x W^T (+ b) for affine-quantized and dense weights.
//
// Affine quantization as MLX stores it (mlx.core.quantize): weight uint32 [N, K * bits / 32],
// values packed along K from the lowest bit up, scales and biases [N, K / group_size];
// w = scale * q + bias. bits 2, 3, 4, 5, 6, 8; group_size 32, 64, 128.
//
// The reference is mx::quantized_matmul / mx::matmul as mlx.nn's layers call them. The own CPU
// kernel takes float32 x and sums over K in one fixed order per output element (16 output rows side
// by side in the lanes), so a row's bits depend on nothing but that row (design rule 1). With int8
// activations it first quantizes x per row in groups of 32 and multiplies integers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "kernels/context.h"
#include "kernels/linear/linear_kernels.h"
#include "tensor/mx.h"

namespace sluice::kernels {

// The CPU kernel's weight: panels of 16 output rows (defined in linear_cpu.h).
struct PackedLinear;

// One immutable weight, prepared for the context's backend: MLX arrays for the reference, packed
// panels for the CPU kernel (both in check mode). Cheap to copy (shared).
class LinearWeight {
 public:
  // Evaluates and packs at once. weight, scales, biases as in the file head; scales and biases
  // float32, float16 or bfloat16; bias [N] or none. Throws Exception on wrong shapes or dtypes.
  static LinearWeight affine(const Context& context,
                             const mx::array& weight,
                             const mx::array& scales,
                             const mx::array& biases,
                             int bits,
                             int group_size,
                             const std::optional<mx::array>& bias = std::nullopt,
                             Activations activations = Activations::kFloat32);
  // weight [N, K], float32, float16 or bfloat16.
  static LinearWeight dense(const Context& context,
                            const mx::array& weight,
                            const std::optional<mx::array>& bias = std::nullopt);

  int out_features() const { return out_features_; }
  int in_features() const { return in_features_; }
  bool quantized() const { return bits_ != 0; }
  int bits() const { return bits_; }  // 0 if dense
  int group_size() const { return group_size_; }
  Activations activations() const { return activations_; }
  size_t nbytes() const;  // resident bytes of all prepared forms

  // For the implementations. weight() etc. hold a value iff the reference form is kept.
  const std::optional<mx::array>& weight() const { return weight_; }
  const std::optional<mx::array>& scales() const { return scales_; }
  const std::optional<mx::array>& biases() const { return biases_; }
  const std::optional<mx::array>& bias() const { return bias_; }
  const std::shared_ptr<const PackedLinear>& packed() const { return packed_; }

 private:
  int out_features_ = 0;
  int in_features_ = 0;
  int bits_ = 0;
  int group_size_ = 0;
  Activations activations_ = Activations::kFloat32;
  std::optional<mx::array> weight_, scales_, biases_, bias_;
  std::shared_ptr<const PackedLinear> packed_;
};

// x [M, K] -> [M, N]. Reference: x of the weight's activation dtype (any float type). Own kernel:
// x float32, result float32.
mx::array linear(const Context& context, const mx::array& x, const LinearWeight& weight);
mx::array linear_reference(const mx::array& x, const LinearWeight& weight);
mx::array linear_cpu(const Context& context, const mx::array& x, const LinearWeight& weight);

}  // namespace sluice::kernels
