// The two gates of a Gated-DeltaNet layer: decay g = exp(-exp(A_log) softplus(a + dt_bias)) and
// write strength beta = sigmoid(b). Reference: mlx-lm's gated_delta.compute_g, uncompiled.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

struct DeltaGates {
  mx::array g;     // float32 [N, Hv]
  mx::array beta;  // [N, Hv] of b's dtype
};

// a, b [N, Hv] of one float dtype; a_log float32 [Hv]; dt_bias [Hv] of a's dtype. The sum and the
// softplus are in that dtype, what follows in float32. Own kernel: float32.
DeltaGates delta_gates(const Context& context,
                       const mx::array& a,
                       const mx::array& b,
                       const mx::array& a_log,
                       const mx::array& dt_bias);
DeltaGates delta_gates_reference(const mx::array& a,
                                 const mx::array& b,
                                 const mx::array& a_log,
                                 const mx::array& dt_bias);
DeltaGates delta_gates_cpu(const Context& context,
                           const mx::array& a,
                           const mx::array& b,
                           const mx::array& a_log,
                           const mx::array& dt_bias);

}  // namespace sluice::kernels
