#include "kernels/rms_norm/rms_norm.h"

#include "tensor/checks.h"

namespace sluice::kernels {

mx::array rms_norm(const Context& context, const mx::array& x, const mx::array& weight, float eps) {
  if (x.ndim() == 0 || x.shape(-1) == 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[rms_norm] x has shape {}; its last axis must exist and not be empty",
                tensor::shape_string(x.shape()));
  }
  tensor::require_dtype("rms_norm", "x", x, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_shape("rms_norm", "weight", weight, {x.shape(-1)});
  tensor::require_dtype("rms_norm", "weight", weight, {x.dtype()});
  if (!(eps >= 0)) {
    throw_error(ErrorCode::kInvalidArgument, "[rms_norm] eps is {}; it must be 0 or more", eps);
  }
  return dispatch(
      context,
      Op::kRmsNorm,
      [&] { return rms_norm_cpu(context, x, weight, eps); },
      [&] { return rms_norm_reference(x, weight, eps); });
}

NormScale::NormScale(double value, int width)
    : value(value), weight(mx::full({width}, static_cast<float>(value), mx::float32)) {
  weight.eval();
}

mx::array rms_norm(const Context& context, const mx::array& x, const NormScale& scale, float eps) {
  if (!context.reference()) return rms_norm(context, x, scale.weight, eps);
  const mx::array factor(static_cast<float>(scale.value), x.dtype());
  return mx::multiply(factor, mx::fast::rms_norm(x, std::nullopt, eps));
}

}  // namespace sluice::kernels
