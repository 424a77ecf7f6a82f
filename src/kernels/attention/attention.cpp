#include "kernels/attention/attention.h"

#include <algorithm>

#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

using tensor::kAnyDim;
using tensor::require_dtype;
using tensor::require_shape;

void require_shapes(const mx::array& q,
                    const mx::array& k,
                    const mx::array& v,
                    const AttentionStorage& storage) {
  require_shape("attention", "q", q, {kAnyDim, kAnyDim, kAnyDim});
  const int tokens = q.shape(0), key_dim = q.shape(2);
  require_shape("attention", "k", k, {tokens, kAnyDim, key_dim});
  const int kv_heads = k.shape(1);
  require_shape("attention", "v", v, {tokens, kv_heads, kAnyDim});
  const int value_dim = v.shape(2);
  if (kv_heads == 0 || key_dim == 0 || value_dim == 0 || q.shape(1) % kv_heads != 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] q has shape {}, k {}, v {}; no size may be 0, and the heads of q must "
                "be a multiple of those of k",
                tensor::shape_string(q.shape()),
                tensor::shape_string(k.shape()),
                tensor::shape_string(v.shape()));
  }
  for (const auto* x : {&q, &k, &v, &storage.keys, &storage.values}) {
    require_dtype("attention", "an input", *x, {mx::float32, mx::float16, mx::bfloat16});
  }
  require_shape("attention", "storage.keys", storage.keys, {kAnyDim, kv_heads, key_dim, kPageSize});
  require_shape("attention",
                "storage.values",
                storage.values,
                {storage.num_pages(), kv_heads, kPageSize, value_dim});
}

// The pages that the row writes, appended to written.
void require_row(const AttentionRow& row,
                 size_t index,
                 int first_token,
                 int num_pages,
                 std::vector<int32_t>& written) {
  const RowSpan& span = row.span;
  if (span.first_token != first_token || span.count < 1 || span.first_position < 0) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] row {} is {} tokens from token {} at position {}; it must start at "
                "token {} and have at least one token and no negative position",
                index,
                span.count,
                span.first_token,
                span.first_position,
                first_token);
  }
  const int64_t end = int64_t{span.first_position} + span.count;
  const int64_t needed = (end + kPageSize - 1) / kPageSize;
  if (static_cast<int64_t>(row.pages.size()) < needed) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] row {} has {} pages; its {} positions need {}",
                index,
                row.pages.size(),
                end,
                needed);
  }
  for (int64_t i = 0; i < needed; ++i) {
    const int32_t page = row.pages[i];
    if (page < 0 || page >= num_pages) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[attention] row {} has page {}; the storage has pages 0 to {}",
                  index,
                  page,
                  num_pages - 1);
    }
    if (i >= span.first_position / kPageSize) written.push_back(page);
  }
}

void require_rows(const std::vector<AttentionRow>& rows, int tokens, int num_pages) {
  std::vector<int32_t> written;
  int next = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    require_row(rows[i], i, next, num_pages, written);
    next += rows[i].span.count;
  }
  if (next != tokens) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] the rows cover {} tokens, but q has {}",
                next,
                tokens);
  }
  std::sort(written.begin(), written.end());
  const auto twice = std::adjacent_find(written.begin(), written.end());
  if (twice != written.end()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] page {} would be written for two places of a pass; copy a shared page "
                "before it is written",
                *twice);
  }
}

}  // namespace

AttentionStorage AttentionStorage::allocate(
    int pages, int kv_heads, int key_dim, int value_dim, mx::Dtype dtype) {
  if (pages < 1 || kv_heads < 1 || key_dim < 1 || value_dim < 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "[attention] storage of {} pages, {} heads, sizes {} and {}; all must be positive",
                pages,
                kv_heads,
                key_dim,
                value_dim);
  }
  // Large blocks come from the operating system page by page, when they are first written.
  auto untouched = [&](mx::Shape shape) {
    size_t bytes = dtype.size();
    for (int size : shape) bytes *= size;
    return mx::array(mx::allocator::malloc(bytes), std::move(shape), dtype);
  };
  return {untouched({pages, kv_heads, key_dim, kPageSize}),
          untouched({pages, kv_heads, kPageSize, value_dim})};
}

mx::array attention(const Context& context,
                    const mx::array& q,
                    const mx::array& k,
                    const mx::array& v,
                    AttentionStorage& storage,
                    const std::vector<AttentionRow>& rows,
                    const AttentionOptions& options) {
  require_shapes(q, k, v, storage);
  require_rows(rows, q.shape(0), storage.num_pages());
  if (q.size() == 0) return mx::zeros({q.shape(0), q.shape(1), v.shape(2)}, q.dtype());
  auto own = [&] {
    auto result = attention_cpu(context, q, k, v, storage, rows, options);
    // In check mode the reference writes the same storage, and replaces the handles: not before
    // the kernel, which holds the old ones, is done with them.
    if (context.check()) result.eval();
    return result;
  };
  auto reference = [&] { return attention_reference(q, k, v, storage, rows, options); };
  return dispatch(context, Op::kAttention, own, reference);
}

}  // namespace sluice::kernels
