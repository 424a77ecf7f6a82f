// Causal grouped-query attention over paged key/value storage.
//
// Storage: pages of 64 positions, one pool per layer, page ids shared by all layers of a sequence.
// Keys lie transposed, [pages, Hkv, Dk, 64], so that the score of 16 positions is 16 lanes; values
// [pages, Hkv, 64, Dv]. The op writes the pass's own k and v into the pages first and then reads
// only storage (design rule 4). Scores, softmax and output are float32 in the own kernel: tiles of
// 256 absolute positions, each with a softmax of its own, merged in ascending order (Milakov and
// Gimelshein, 2018; attention_kernels.h), so a row's bits do not depend on how its tokens were cut
// into passes. Reference: gather the row's pages, then mx::fast::scaled_dot_product_attention as
// mlx-lm calls it (mask "causal" for more than one token, none for one).
//
// The own kernel writes the pages when its result is evaluated, so every pass must be evaluated, in
// order, before the next one is made or its pages are given away.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/context.h"
#include "kernels/row_span.h"

namespace sluice::kernels {

inline constexpr int kPageSize = 64;  // positions per page

// One layer's pool. The own kernel writes into the arrays in place; the reference replaces the
// handles by updated arrays (which MLX updates in place when nothing else holds them). So nobody
// may keep a copy of the handles. Memory is allocated without being touched.
struct AttentionStorage {
  mx::array keys;    // [pages, Hkv, Dk, kPageSize]
  mx::array values;  // [pages, Hkv, kPageSize, Dv]

  static AttentionStorage allocate(
      int pages, int kv_heads, int key_dim, int value_dim, mx::Dtype dtype);
  int num_pages() const { return keys.shape(0); }
};

// pages[i] holds the sequence's positions [64 i, 64 i + 64); enough of them for
// first_position + count.
struct AttentionRow {
  RowSpan span;
  std::vector<int32_t> pages;
};

struct AttentionOptions {
  float scale = 1.0f;  // multiplies q k^T
};

// q [N, Hq, Dk], k [N, Hkv, Dk], v [N, Hkv, Dv] (already rotated), rows cover the N tokens
// -> [N, Hq, Dv]. Hq is a multiple of Hkv. No two rows share a page that the pass writes. Own
// kernel: float32 storage and inputs.
mx::array attention(const Context& context,
                    const mx::array& q,
                    const mx::array& k,
                    const mx::array& v,
                    AttentionStorage& storage,
                    const std::vector<AttentionRow>& rows,
                    const AttentionOptions& options);
mx::array attention_reference(const mx::array& q,
                              const mx::array& k,
                              const mx::array& v,
                              AttentionStorage& storage,
                              const std::vector<AttentionRow>& rows,
                              const AttentionOptions& options);
mx::array attention_cpu(const Context& context,
                        const mx::array& q,
                        const mx::array& k,
                        const mx::array& v,
                        AttentionStorage& storage,
                        const std::vector<AttentionRow>& rows,
                        const AttentionOptions& options);

}  // namespace sluice::kernels
