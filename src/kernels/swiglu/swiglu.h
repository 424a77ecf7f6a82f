// y = silu(gate) * up (Shazeer, 2020). Reference: mlx-lm's activations.swiglu, uncompiled.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

// gate, up: the same shape and dtype. Own kernel: float32 only.
mx::array swiglu(const Context& context, const mx::array& gate, const mx::array& up);
mx::array swiglu_reference(const mx::array& gate, const mx::array& up);
mx::array swiglu_cpu(const Context& context, const mx::array& gate, const mx::array& up);

}  // namespace sluice::kernels
