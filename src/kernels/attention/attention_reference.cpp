#include <algorithm>

#include "kernels/attention/attention.h"

namespace sluice::kernels {
namespace {

// Writes one row's keys [L, Hkv, Dk] and values [L, Hkv, Dv] into its pages.
void write_row(const mx::array& k,
               const mx::array& v,
               AttentionStorage& storage,
               const AttentionRow& row) {
  const int heads = k.shape(1), key_dim = k.shape(2), value_dim = v.shape(2);
  const int end = row.span.first_position + row.span.count;
  auto keys = mx::astype(mx::transpose(k, {1, 2, 0}), storage.keys.dtype());      // [Hkv, Dk, L]
  auto values = mx::astype(mx::transpose(v, {1, 0, 2}), storage.values.dtype());  // [Hkv, L, Dv]
  for (int position = row.span.first_position; position < end;) {
    const int page = row.pages.at(position / kPageSize);
    const int begin = position % kPageSize;
    const int count = std::min(kPageSize - begin, end - position);
    const int first = position - row.span.first_position;
    auto key_part = mx::slice(keys, {0, 0, first}, {heads, key_dim, first + count});
    auto value_part = mx::slice(values, {0, first, 0}, {heads, first + count, value_dim});
    storage.keys = mx::slice_update(storage.keys,
                                    mx::expand_dims(key_part, 0),
                                    mx::Shape{page, 0, 0, begin},
                                    mx::Shape{page + 1, heads, key_dim, begin + count});
    storage.values = mx::slice_update(storage.values,
                                      mx::expand_dims(value_part, 0),
                                      mx::Shape{page, 0, begin, 0},
                                      mx::Shape{page + 1, heads, begin + count, value_dim});
    position += count;
  }
}

// The row's first `length` positions as mlx-lm's cache returns them: [1, Hkv, length, D].
std::pair<mx::array, mx::array> gather_row(const AttentionStorage& storage,
                                           const AttentionRow& row,
                                           int length) {
  const int used = (length + kPageSize - 1) / kPageSize;
  mx::array ids(row.pages.data(), {used}, mx::int32);
  auto keys = mx::transpose(mx::take(storage.keys, ids, 0), {1, 0, 3, 2});      // [Hkv, n, 64, Dk]
  auto values = mx::transpose(mx::take(storage.values, ids, 0), {1, 0, 2, 3});  // [Hkv, n, 64, Dv]
  auto flat = [&](const mx::array& x) {
    const int heads = x.shape(0), dim = x.shape(3);
    auto y = mx::reshape(x, {1, heads, used * kPageSize, dim});
    return mx::slice(y, {0, 0, 0, 0}, {1, heads, length, dim});
  };
  return {flat(keys), flat(values)};
}

}  // namespace

mx::array attention_reference(const mx::array& q,
                              const mx::array& k,
                              const mx::array& v,
                              AttentionStorage& storage,
                              const std::vector<AttentionRow>& rows,
                              const AttentionOptions& options) {
  const int heads = q.shape(1), key_dim = q.shape(2), value_dim = v.shape(2);
  std::vector<mx::array> parts;
  for (const auto& row : rows) {
    const int first = row.span.first_token, last = first + row.span.count;
    auto slice_row = [&](const mx::array& x) {
      return mx::slice(x, {first, 0, 0}, {last, x.shape(1), x.shape(2)});
    };
    write_row(slice_row(k), slice_row(v), storage, row);
    auto [keys, values] = gather_row(storage, row, row.span.first_position + row.span.count);
    auto queries =
        mx::transpose(mx::reshape(slice_row(q), {1, row.span.count, heads, key_dim}), {0, 2, 1, 3});
    auto out = mx::fast::scaled_dot_product_attention(
        queries, keys, values, options.scale, row.span.count > 1 ? "causal" : "");
    parts.push_back(
        mx::reshape(mx::transpose(out, {0, 2, 1, 3}), {row.span.count, heads, value_dim}));
  }
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

}  // namespace sluice::kernels
