// y = silu(z) * (x / sqrt(mean(x^2) + eps) * weight) over the last axis: the output norm of a
// Gated-DeltaNet layer. Reference: mlx-lm's qwen3_next.Qwen3NextRMSNormGated, uncompiled: the norm
// in x's dtype, silu and the product in float32.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

// x, z [..., D] of one shape and dtype, weight [D] of that dtype. Own kernel: float32 only.
mx::array gated_rms_norm(const Context& context,
                         const mx::array& x,
                         const mx::array& z,
                         const mx::array& weight,
                         float eps);
mx::array gated_rms_norm_reference(const mx::array& x,
                                   const mx::array& z,
                                   const mx::array& weight,
                                   float eps);
mx::array gated_rms_norm_cpu(const Context& context,
                             const mx::array& x,
                             const mx::array& z,
                             const mx::array& weight,
                             float eps);

}  // namespace sluice::kernels
