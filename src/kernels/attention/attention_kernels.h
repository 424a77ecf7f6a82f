// The own CPU attention kernel's inputs and function table, in plain types: included by the
// translation units of single instruction set variants (see simd/vec16-inl.h for what those may
// include).
//
// The arithmetic, which defines every bit of the result; for one query at position p and one head:
//   tile t is the absolute positions [256 t, 256 t + 256) up to p, lanes are 16 positions
//     s_j = fma over d ascending of (q_d scale, k_jd), from 0
//     m_t = max of s_j;  e_j = exp(s_j - m_t)
//     l_t = sum of e_j: lane i adds its e_j in ascending order, then the lanes by the fixed tree
//     a_t = fma over j ascending of (e_j, v_j), from 0
//   tiles are merged in ascending order, from those of tile 0:
//     m' = max(m, m_t);  x = exp(m - m');  y = exp(m_t - m')
//     l = fma(l, x, l_t y);  a = fma(a, x, a_t y)
//   out = a / l
// So a tile can be computed by anybody, and neither the tiles that lie wholly behind p nor the
// positions behind p in the last one take part (lanes behind p count as -infinity, which adds +0 to
// a sum of numbers >= 0 and is no maximum). How queries and heads are blocked changes speed only.
#pragma once

#include <stdint.h>

namespace sluice::kernels {

inline constexpr int kMaxHeadDim = 512;
inline constexpr int kPagePositions = 64;
inline constexpr int kTilePages = 4;
inline constexpr int kTilePositions = kTilePages * kPagePositions;

// Rows (a query and a head each) of a block: many, so that a page of keys or values that came to
// the first-level cache serves them all, few enough that their scores stay in the second level.
inline constexpr int kMaxBlockRows = 48;
// Floats of a block's queries, or of its accumulators. 24 KiB: the stack holds four such buffers.
inline constexpr int kMaxBlockFloats = 6144;

constexpr int padded_dim(int dim) {
  return (dim + 15) / 16 * 16;
}
constexpr int max_block_rows(int key_dim, int value_dim) {
  const int dim = padded_dim(key_dim > value_dim ? key_dim : value_dim);
  const int rows = kMaxBlockFloats / dim;
  return rows < kMaxBlockRows ? rows : kMaxBlockRows;
}

// What all blocks of a call share. Strides are in floats.
struct AttentionView {
  const float* keys = nullptr;    // [pages, kv_heads, key_dim, 64]
  const float* values = nullptr;  // [pages, kv_heads, 64, value_dim]
  int kv_heads = 0;
  int key_dim = 0;    // 1 .. kMaxHeadDim
  int value_dim = 0;  // 1 .. kMaxHeadDim
  float scale = 1.0f;
  int64_t q_strides[3] = {0, 0, 0};  // token, head, d
  int64_t out_strides[2] = {0, 0};   // token, head
};

// queries consecutive tokens of one sequence x heads consecutive query heads of one kv head. Row
// r of the block is query r / heads, head r % heads.
struct AttentionBlock {
  const float* q = nullptr;  // of the first query and head
  float* out = nullptr;      // the same; may be q if laid out alike
  const int32_t* pages = nullptr;
  int kv_head = 0;
  int queries = 0;
  int heads = 0;           // queries * heads <= max_block_rows()
  int first_position = 0;  // of the first query

  int rows() const { return queries * heads; }
  // Tiles that its last query sees.
  int tiles() const { return (first_position + queries - 1) / kTilePositions + 1; }
};

// One tile's result for a block: [rows][padded value_dim] a, then [rows] m, then [rows] l.
constexpr int64_t partial_floats(int rows, int value_dim) {
  return int64_t{rows} * (padded_dim(value_dim) + 2);
}

struct AttentionKernels {
  // All tiles of a block, merged, to out.
  void (*attend)(const AttentionView& view, const AttentionBlock& block);
  // The same in two steps, with equal bits: each tile to its partial, by anybody in any order, and
  // then partials [tiles][partial_floats] to out. Overwrites the first partial.
  void (*attend_tile)(const AttentionView& view,
                      const AttentionBlock& block,
                      int tile,
                      float* partial);
  void (*merge_tiles)(const AttentionView& view, const AttentionBlock& block, float* partials);
};

}  // namespace sluice::kernels
