#include <algorithm>

#include "kernels/gated_delta/gated_delta.h"

namespace sluice::kernels {
namespace {

// x's tokens of one row, [1, T, ...].
mx::array tokens_of(const mx::array& x, const std::vector<int32_t>& tokens) {
  const int count = static_cast<int>(tokens.size());
  if (count == x.shape(0)) return mx::expand_dims(x, 0);
  mx::array indices(tokens.data(), {count}, mx::int32);
  return mx::expand_dims(mx::take(x, indices, 0), 0);
}

// x[:, t] of [1, T, ...].
mx::array at(const mx::array& x, int t) {
  mx::Shape start(x.ndim(), 0), stop = x.shape();
  start[1] = t;
  stop[1] = t + 1;
  return mx::squeeze(mx::slice(x, start, stop), 1);
}

// Heads of keys for the heads of values, [1, T, Hk, Dk] -> [1, T, Hv, Dk].
mx::array for_value_heads(const mx::array& x, const GatedDeltaShape& shape) {
  const int factor = shape.value_heads / shape.key_heads;
  if (factor == 1) return x;
  if (shape.tiled_heads) return mx::tile(x, {1, 1, factor, 1});
  return mx::repeat(x, factor, -2);
}

// gated_delta.gated_delta_ops for one row -> y [T, Hv, Dv]; state becomes the one after it.
mx::array run_row(const mx::array& q,
                  const mx::array& k,
                  const mx::array& v,
                  const mx::array& g,
                  const mx::array& beta,
                  mx::array& state) {
  std::vector<mx::array> ys;
  for (int t = 0; t < k.shape(1); ++t) {
    const auto gate = at(g, t);
    const auto decay =
        gate.ndim() == 2 ? mx::expand_dims(gate, {-2, -1}) : mx::expand_dims(gate, -2);
    const auto key = mx::expand_dims(at(k, t), -2);
    state = mx::multiply(state, decay);
    const auto memory = mx::sum(mx::multiply(state, key), -1);
    const auto delta =
        mx::multiply(mx::subtract(at(v, t), memory), mx::expand_dims(at(beta, t), -1));
    state = mx::add(state, mx::multiply(key, mx::expand_dims(delta, -1)));
    auto y = mx::sum(mx::multiply(state, mx::expand_dims(at(q, t), -2)), -1);
    ys.push_back(mx::astype(y, q.dtype()));
  }
  return mx::squeeze(mx::stack(ys, 1), 0);
}

}  // namespace

mx::array gated_delta_reference(const mx::array& q,
                                const mx::array& k,
                                const mx::array& v,
                                const mx::array& g,
                                const mx::array& beta,
                                const GatedDeltaShape& shape,
                                const std::vector<DeltaRow>& rows) {
  const int tokens = k.shape(0);
  std::vector<mx::array> parts;
  // Where each token's output lies in the joined parts; what no row lists is the row of zeros.
  std::vector<int32_t> places(tokens, -1);
  int joined = 0;
  for (const auto& row : rows) {
    if (row.tokens.empty()) continue;
    auto state = mx::expand_dims(*row.state, 0);
    parts.push_back(run_row(for_value_heads(tokens_of(q, row.tokens), shape),
                            for_value_heads(tokens_of(k, row.tokens), shape),
                            tokens_of(v, row.tokens),
                            tokens_of(g, row.tokens),
                            tokens_of(beta, row.tokens),
                            state));
    if (row.settled) *row.state = mx::squeeze(state, 0);
    for (const int token : row.tokens) places[token] = joined++;
  }
  const mx::Shape one{1, shape.value_heads, shape.value_dim};
  const bool in_order = std::is_sorted(places.begin(), places.end()) && joined == tokens;
  if (in_order && parts.size() == 1) return parts[0];
  if (tokens == 0) return mx::zeros({0, shape.value_heads, shape.value_dim}, q.dtype());
  parts.push_back(mx::zeros(one, q.dtype()));
  for (auto& place : places) place = place < 0 ? joined : place;
  return mx::take(mx::concatenate(parts, 0), mx::array(places.data(), {tokens}, mx::int32), 0);
}

}  // namespace sluice::kernels
