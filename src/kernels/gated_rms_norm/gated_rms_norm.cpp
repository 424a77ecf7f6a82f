#include "kernels/gated_rms_norm/gated_rms_norm.h"

#include "tensor/checks.h"

namespace sluice::kernels {

mx::array gated_rms_norm(const Context& context,
                         const mx::array& x,
                         const mx::array& z,
                         const mx::array& weight,
                         float eps) {
  constexpr const char* kOp = "gated_rms_norm";
  tensor::require_dtype(kOp, "x", x, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_dtype(kOp, "z", z, {x.dtype()});
  tensor::require_dtype(kOp, "weight", weight, {x.dtype()});
  if (x.ndim() < 1 || x.shape() != z.shape()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[gated_rms_norm] x has shape {} and z {}; they must be equal, with at least one "
                "axis",
                tensor::shape_string(x.shape()),
                tensor::shape_string(z.shape()));
  }
  tensor::require_shape(kOp, "weight", weight, {x.shape(-1)});
  return dispatch(
      context,
      Op::kGatedRmsNorm,
      [&] { return gated_rms_norm_cpu(context, x, z, weight, eps); },
      [&] { return gated_rms_norm_reference(x, z, weight, eps); });
}

}  // namespace sluice::kernels
