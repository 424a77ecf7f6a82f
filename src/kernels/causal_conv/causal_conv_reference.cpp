#include <algorithm>

#include "kernels/causal_conv/causal_conv.h"

namespace sluice::kernels {

mx::array causal_conv_reference(const mx::array& x,
                                const ConvWeight& weight,
                                const std::vector<ConvRow>& rows) {
  const int tokens = x.shape(0), channels = weight.channels(), keep = weight.taps() - 1;
  std::vector<mx::array> parts;
  std::vector<int32_t> places(tokens, -1);
  int joined = 0;
  for (const auto& row : rows) {
    const int count = static_cast<int>(row.tokens.size());
    if (count == 0) continue;
    auto own = x;
    if (count != tokens) {
      own = mx::take(x, mx::array(row.tokens.data(), {count}, mx::int32), 0);
    }
    auto input = mx::concatenate({mx::expand_dims(*row.tail, 0), mx::expand_dims(own, 0)}, 1);
    auto y = mx::conv1d(input, *weight.by_channel(), 1, 0, 1, channels);
    parts.push_back(mx::squeeze(mx::multiply(y, mx::sigmoid(y)), 0));
    if (row.settled) {
      auto tail = mx::slice(input, {0, count, 0}, {1, count + keep, channels});
      *row.tail = mx::contiguous(mx::squeeze(tail, 0));
    }
    for (const int token : row.tokens) places[token] = joined++;
  }
  if (tokens == 0) return mx::zeros(x.shape(), x.dtype());
  const bool in_order = std::is_sorted(places.begin(), places.end()) && joined == tokens;
  if (in_order && parts.size() == 1) return parts[0];
  parts.push_back(mx::zeros({1, channels}, x.dtype()));
  for (auto& place : places) place = place < 0 ? joined : place;
  return mx::take(mx::concatenate(parts, 0), mx::array(places.data(), {tokens}, mx::int32), 0);
}

}  // namespace sluice::kernels
