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

}  // namespace sluice::kernels
