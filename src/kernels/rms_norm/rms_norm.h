// y = x / sqrt(mean(x^2) + eps) * weight over the last axis (Zhang and Sennrich, 2019).
// Reference: mx::fast::rms_norm.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

// x [..., D], weight [D] of x's dtype. Own kernel: float32 only.
mx::array rms_norm(const Context& context, const mx::array& x, const mx::array& weight, float eps);
mx::array rms_norm_reference(const mx::array& x, const mx::array& weight, float eps);
mx::array rms_norm_cpu(const Context& context,
                       const mx::array& x,
                       const mx::array& weight,
                       float eps);

// One scale in place of a weight: y = scale * (x / sqrt(mean(x^2) + eps)). With eps / D and scale
// D^-0.5 that is the L2 norm. The reference rounds the scale to x's dtype and multiplies last, as
// mlx-lm's gated_delta.normalize_qk does.
struct NormScale {
  double value = 1;
  mx::array weight;  // float32 [D], all of them value; evaluated

  NormScale(double value, int width);
};
mx::array rms_norm(const Context& context, const mx::array& x, const NormScale& scale, float eps);

}  // namespace sluice::kernels
