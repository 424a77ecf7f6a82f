// The gated feed-forward block: down(silu(gate(x)) * up(x)).
#pragma once

#include "kernels/linear/linear.h"

namespace sluice::nn {

struct GatedMlp {
  kernels::LinearWeight gate, up, down;

  // x [N, H] -> [N, H].
  mx::array forward(const kernels::Context& context, const mx::array& x) const;
};

}  // namespace sluice::nn
