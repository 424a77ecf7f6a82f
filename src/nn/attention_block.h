// Self-attention: projections, optional q/k norm, rotary embedding, paged attention, optional
// output gate, output projection.
#pragma once

#include <optional>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/rope/rope.h"

namespace sluice::nn {

struct AttentionBlock {
  kernels::LinearWeight wq, wk, wv, wo;
  std::optional<kernels::LinearWeight> wgate;  // its sigmoid multiplies what attention gives
  std::optional<mx::array> q_norm, k_norm;     // [head_dim], RMS norm per head before the rotation
  float norm_eps = 1e-6f;
  int heads = 0, kv_heads = 0, head_dim = 0;
  kernels::RopeSpec rope;
  float scale = 1.0f;

  // x [N, H] -> [N, H]; rows cover the N tokens. Writes the pass's keys and values into storage.
  mx::array forward(const kernels::Context& context,
                    const mx::array& x,
                    kernels::AttentionStorage& storage,
                    const std::vector<kernels::AttentionRow>& rows) const;
};

}  // namespace sluice::nn
