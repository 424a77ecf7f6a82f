// y = x * sigmoid(gate): the output gate of gated attention (Qiu et al., 2025) and of a shared
// expert. Reference: mlx-lm's qwen3_next.Qwen3NextAttention.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

// x, gate: the same dtype; gate has x's shape or broadcasts to it. Own kernel: float32 only.
mx::array sigmoid_gate(const Context& context, const mx::array& x, const mx::array& gate);
mx::array sigmoid_gate_reference(const mx::array& x, const mx::array& gate);
// gate of x's shape.
mx::array sigmoid_gate_cpu(const Context& context, const mx::array& x, const mx::array& gate);

}  // namespace sluice::kernels
