#include "nn/gated_delta_block.h"

#include "kernels/delta_gates/delta_gates.h"
#include "kernels/gated_rms_norm/gated_rms_norm.h"

namespace sluice::nn {
namespace {

// Added to the sum of squares of q and k; rms_norm adds to their mean.
constexpr double kL2Eps = 1e-6;

// Columns [begin, begin + heads * dim) of x [N, C] as [N, heads, dim].
mx::array heads_of(const mx::array& x, int begin, int heads, int dim) {
  const int tokens = x.shape(0);
  return mx::reshape(mx::slice(x, {0, begin}, {tokens, begin + heads * dim}), {tokens, heads, dim});
}

}  // namespace

mx::array GatedDeltaBlock::forward(const kernels::Context& context,
                                   const mx::array& x,
                                   const std::vector<GatedDeltaRow>& rows) const {
  const int tokens = x.shape(0);
  std::vector<kernels::ConvRow> conv_rows;
  std::vector<kernels::DeltaRow> delta_rows;
  for (const auto& row : rows) {
    auto listed = kernels::token_range(row.span.first_token, row.span.count);
    conv_rows.push_back({listed, &row.slot->tail(), row.settled});
    delta_rows.push_back({std::move(listed), &row.slot->state(), row.settled});
  }

  const auto qkv = kernels::linear(context, x, in_qkv);
  const auto z = kernels::linear(context, x, in_z);
  const auto b = kernels::linear(context, x, in_b);
  const auto a = kernels::linear(context, x, in_a);
  const auto mixed = kernels::causal_conv(context, qkv, conv, conv_rows);
  const int key_size = shape.key_heads * shape.key_dim;
  const float eps = static_cast<float>(kL2Eps / shape.key_dim);
  auto q = heads_of(mixed, 0, shape.key_heads, shape.key_dim);
  auto k = heads_of(mixed, key_size, shape.key_heads, shape.key_dim);
  const auto v = heads_of(mixed, 2 * key_size, shape.value_heads, shape.value_dim);
  q = kernels::rms_norm(context, q, q_scale, eps);
  k = kernels::rms_norm(context, k, k_scale, eps);
  const auto gates = kernels::delta_gates(context, a, b, a_log, dt_bias);

  auto y = kernels::gated_delta(context, q, k, v, gates.g, gates.beta, shape, delta_rows);
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].settled) continue;
    rows[r].slot->record({qkv, k, v, gates.g, gates.beta, delta_rows[r].tokens});
  }
  y = kernels::gated_rms_norm(
      context, y, mx::reshape(z, {tokens, shape.value_heads, shape.value_dim}), norm, norm_eps);
  return kernels::linear(context, mx::reshape(y, {tokens, -1}), out);
}

}  // namespace sluice::nn
