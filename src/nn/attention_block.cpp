#include "nn/attention_block.h"

#include "kernels/rms_norm/rms_norm.h"
#include "kernels/sigmoid_gate/sigmoid_gate.h"

namespace sluice::nn {

mx::array AttentionBlock::forward(const kernels::Context& context,
                                  const mx::array& x,
                                  kernels::AttentionStorage& storage,
                                  const std::vector<kernels::AttentionRow>& rows) const {
  const int tokens = x.shape(0);
  std::vector<kernels::RowSpan> spans;
  for (const auto& row : rows) spans.push_back(row.span);

  auto project = [&](const kernels::LinearWeight& w, int count) {
    return mx::reshape(kernels::linear(context, x, w), {tokens, count, head_dim});
  };
  auto q = project(wq, heads);
  auto k = project(wk, kv_heads);
  auto v = project(wv, kv_heads);
  if (q_norm) q = kernels::rms_norm(context, q, *q_norm, norm_eps);
  if (k_norm) k = kernels::rms_norm(context, k, *k_norm, norm_eps);
  q = kernels::rope(context, q, spans, rope);
  k = kernels::rope(context, k, spans, rope);
  auto y = kernels::attention(context, q, k, v, storage, rows, {.scale = scale});
  y = mx::reshape(y, {tokens, heads * head_dim});
  if (wgate) y = kernels::sigmoid_gate(context, y, kernels::linear(context, x, *wgate));
  return kernels::linear(context, y, wo);
}

}  // namespace sluice::nn
