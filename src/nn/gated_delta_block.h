// The Gated-DeltaNet mixer (Yang et al., 2024) as Qwen3-Next and Qwen3.5 have it: projections,
// causal convolution, normalised q and k, gated delta rule, gated norm, output projection.
#pragma once

#include <vector>

#include "cache/gated_delta_slot.h"
#include "kernels/causal_conv/causal_conv.h"
#include "kernels/gated_delta/gated_delta.h"
#include "kernels/linear/linear.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/row_span.h"

namespace sluice::nn {

// One row of a pass and its slot of this layer.
struct GatedDeltaRow {
  kernels::RowSpan span;
  cache::GatedDeltaSlot* slot = nullptr;  // borrowed
  bool settled = true;                    // else slot and state stay, and the slot records
};

struct GatedDeltaBlock {
  kernels::LinearWeight in_qkv, in_z, in_b, in_a, out;
  kernels::ConvWeight conv;
  mx::array a_log;    // float32 [Hv]
  mx::array dt_bias;  // [Hv]
  mx::array norm;     // [Dv]
  kernels::NormScale q_scale, k_scale;
  kernels::GatedDeltaShape shape;
  float norm_eps = 1e-6f;

  // x [N, H] -> [N, H]; rows cover the N tokens.
  mx::array forward(const kernels::Context& context,
                    const mx::array& x,
                    const std::vector<GatedDeltaRow>& rows) const;
};

}  // namespace sluice::nn
