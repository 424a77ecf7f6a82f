#include "kernels/linear/linear.h"

#include "kernels/linear/linear_cpu.h"
#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

void require_weight_size(const mx::array& weight) {
  tensor::require_shape("linear", "weight", weight, {tensor::kAnyDim, tensor::kAnyDim});
  if (weight.size() == 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[linear] weight has shape {}; it must not be empty",
                tensor::shape_string(weight.shape()));
  }
}

void require_bias(const std::optional<mx::array>& bias, int out_features) {
  if (!bias) return;
  tensor::require_shape("linear", "bias", *bias, {out_features});
  tensor::require_dtype("linear", "bias", *bias, {mx::float32, mx::float16, mx::bfloat16});
}

void require_quantization(int bits, int group_size, const mx::array& weight) {
  if (bits < 2 || bits > 8 || bits == 7) {
    throw_error(ErrorCode::kUnsupported,
                "[linear] {}-bit weights; supported are 2, 3, 4, 5, 6 and 8 bits",
                bits);
  }
  if (group_size != 32 && group_size != 64 && group_size != 128) {
    throw_error(ErrorCode::kUnsupported,
                "[linear] quantization groups of {}; supported are 32, 64 and 128",
                group_size);
  }
  // group_size * bits is a multiple of 32, so whole groups are whole words.
  const int group_words = group_size * bits / 32;
  if (weight.shape(1) % group_words != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[linear] weight has shape {}; with {} bits and groups of {} its rows must be a "
                "multiple of {} words long",
                tensor::shape_string(weight.shape()),
                bits,
                group_size,
                group_words);
  }
}

bool keep_reference(const Context& context) {
  return context.reference() || context.check();
}

}  // namespace

LinearWeight LinearWeight::affine(const Context& context,
                                  const mx::array& weight,
                                  const mx::array& scales,
                                  const mx::array& biases,
                                  int bits,
                                  int group_size,
                                  const std::optional<mx::array>& bias,
                                  Activations activations) {
  tensor::require_dtype("linear", "weight", weight, {mx::uint32});
  require_weight_size(weight);
  require_quantization(bits, group_size, weight);
  LinearWeight result;
  result.out_features_ = weight.shape(0);
  result.in_features_ = static_cast<int>(int64_t{weight.shape(1)} * 32 / bits);
  result.bits_ = bits;
  result.group_size_ = group_size;
  const int groups = result.in_features_ / group_size;
  for (const auto& [name, array] : {std::pair{"scales", &scales}, std::pair{"biases", &biases}}) {
    tensor::require_shape("linear", name, *array, {result.out_features_, groups});
    tensor::require_dtype("linear", name, *array, {mx::float32, mx::float16, mx::bfloat16});
  }
  require_bias(bias, result.out_features_);
  if (keep_reference(context)) {
    result.weight_ = weight;
    result.scales_ = scales;
    result.biases_ = biases;
    result.bias_ = bias;
    mx::eval({weight, scales, biases});
    if (bias) mx::eval({*bias});
  }
  if (!context.reference()) {
    result.activations_ = activations;
    result.packed_ =
        pack_affine(context.pool(), {weight, scales, biases, bits, group_size}, activations, bias);
  }
  return result;
}

LinearWeight LinearWeight::dense(const Context& context,
                                 const mx::array& weight,
                                 const std::optional<mx::array>& bias) {
  tensor::require_dtype("linear", "weight", weight, {mx::float32, mx::float16, mx::bfloat16});
  require_weight_size(weight);
  LinearWeight result;
  result.out_features_ = weight.shape(0);
  result.in_features_ = weight.shape(1);
  require_bias(bias, result.out_features_);
  if (keep_reference(context)) {
    result.weight_ = weight;
    result.bias_ = bias;
    mx::eval({weight});
    if (bias) mx::eval({*bias});
  }
  if (!context.reference()) result.packed_ = pack_dense(context.pool(), weight, bias);
  return result;
}

size_t LinearWeight::nbytes() const {
  size_t bytes = packed_ ? packed_->nbytes : 0;
  for (const auto* array : {&weight_, &scales_, &biases_, &bias_}) {
    if (*array) bytes += (*array)->nbytes();
  }
  return bytes;
}

mx::array linear(const Context& context, const mx::array& x, const LinearWeight& weight) {
  tensor::require_shape("linear", "x", x, {tensor::kAnyDim, weight.in_features()});
  return dispatch(
      context,
      Op::kLinear,
      [&] { return linear_cpu(context, x, weight); },
      [&] { return linear_reference(x, weight); });
}

}  // namespace sluice::kernels
