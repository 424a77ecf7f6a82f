#include "kernels/rope/rope.h"

namespace sluice::kernels {
namespace {

// One row as mlx-lm has it: [1, H, L, D] and an integer offset.
mx::array rotate_row(const mx::array& x, const RowSpan& row, const RopeSpec& spec) {
  const int heads = x.shape(1), dim = x.shape(2);
  const int last = row.first_token + row.count;
  auto y = mx::slice(x, {row.first_token, 0, 0}, {last, heads, dim});
  y = mx::transpose(mx::reshape(y, {1, row.count, heads, dim}), {0, 2, 1, 3});
  if (spec.input_scale != 1.0f) {
    // rope_utils.YarnRoPE: x.at[..., :dims].multiply(mscale).
    auto factor = mx::array(spec.input_scale, y.dtype());
    auto head = mx::multiply(mx::slice(y, {0, 0, 0, 0}, {1, heads, row.count, spec.dims}), factor);
    y = mx::slice_update(y, head, mx::Shape{0, 0, 0, 0}, mx::Shape{1, heads, row.count, spec.dims});
  }
  std::optional<float> base;
  if (!spec.freqs) base = spec.base;
  y = mx::fast::rope(
      y, spec.dims, spec.traditional, base, spec.scale, row.first_position, spec.freqs);
  return mx::reshape(mx::transpose(y, {0, 2, 1, 3}), {row.count, heads, dim});
}

}  // namespace

mx::array rope_reference(const mx::array& x,
                         const std::vector<RowSpan>& rows,
                         const RopeSpec& spec) {
  std::vector<mx::array> parts;
  for (const auto& row : rows) parts.push_back(rotate_row(x, row, spec));
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

}  // namespace sluice::kernels
