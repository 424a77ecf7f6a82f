// The own CPU attention kernel for one instruction set variant; attention_kernels.h has the
// arithmetic. Both products run on register tiles of up to kTileRows rows x kVectors 16-lane
// columns: scores over d (columns are positions), then values over positions (columns are the
// value dimension). An output element's chain of operations is the same in every tile shape.
#include "kernels/attention/attention_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

inline constexpr float kMinusInfinity = -__builtin_inff();

// As many accumulators as the registers hold, and columns enough to hide the latency of an fma.
#if defined(SLUICE_ISA_AVX512)
inline constexpr int kTileRows = 6;
constexpr int tile_vectors(int) {
  return 4;
}
#elif defined(SLUICE_ISA_AVX2)
inline constexpr int kTileRows = 6;
constexpr int tile_vectors(int rows) {
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}
#else
inline constexpr int kTileRows = 2;
constexpr int tile_vectors(int) {
  return 1;
}
#endif

// Calls body.template operator()<kRows>() for rows in 1 .. kTileRows.
template <class Body>
SLUICE_SIMD void with_rows(int rows, Body body) {
  switch (rows) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
#if !defined(SLUICE_ISA_GENERIC)
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    case 6:
      return body.template operator()<6>();
#endif
  }
}

// Positions of the tile that row r's query may see: 0 if the tile lies behind it.
SLUICE_SIMD int row_limit(const AttentionBlock& block, int r, int tile) {
  const int limit = block.first_position + r / block.heads + 1 - tile * kTilePositions;
  return limit < 0 ? 0 : limit < kTilePositions ? limit : kTilePositions;
}

SLUICE_SIMD int64_t head_index(const AttentionView& view, const AttentionBlock& block, int page) {
  return int64_t{block.pages[page]} * view.kv_heads + block.kv_head;
}

// Queries times scale, [rows][key_dim].
void scale_queries(const AttentionView& view, const AttentionBlock& block, float* scaled) {
  const int rows = block.rows();
  for (int r = 0; r < rows; ++r) {
    const int query = r / block.heads, head = r % block.heads;
    const float* q = block.q + query * view.q_strides[0] + head * view.q_strides[1];
    if (view.q_strides[2] == 1) {
      for (int d = 0; d < view.key_dim; ++d) scaled[d] = q[d] * view.scale;
    } else {
      for (int d = 0; d < view.key_dim; ++d) scaled[d] = q[d * view.q_strides[2]] * view.scale;
    }
    scaled += view.key_dim;
  }
}

// scores[r][16 v + lane] of kVectors columns of one page's keys.
template <int kRows, int kVectors>
void score_columns(const float* q, const float* keys, int key_dim, float* scores) {
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[r][v] = simd::set1(0.0f);
  }
#pragma GCC unroll 2
  for (int d = 0; d < key_dim; ++d) {
    F32x16 key[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) key[v] = simd::load(keys + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const F32x16 query = simd::set1(q[r * key_dim + d]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[r][v] = simd::fma(key[v], query, acc[r][v]);
    }
    keys += kPagePositions;
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      simd::store(scores + r * kTilePositions + v * kLanes, acc[r][v]);
    }
  }
}

// The same for the first `columns` 16-lane columns of a page.
template <int kRows>
void score_page(const float* q, const float* keys, int key_dim, int columns, float* scores) {
  constexpr int kVectors = tile_vectors(kRows);
  int c = 0;
  for (; c + kVectors <= columns; c += kVectors) {
    score_columns<kRows, kVectors>(q, keys + c * kLanes, key_dim, scores + c * kLanes);
  }
  for (; c < columns; ++c) {
    score_columns<kRows, 1>(q, keys + c * kLanes, key_dim, scores + c * kLanes);
  }
}

// Scores [rows][kTilePositions] of a tile, up to the last position that a query of the block sees,
// rounded up to whole columns (what lies behind is masked by exponentiate()).
void score_tile(const AttentionView& view,
                const AttentionBlock& block,
                const float* scaled,
                int tile,
                float* scores) {
  const int rows = block.rows();
  const int limit = row_limit(block, rows - 1, tile);
  for (int page = 0; page * kPagePositions < limit; ++page) {
    const int64_t head = head_index(view, block, tile * kTilePages + page);
    const float* keys = view.keys + head * view.key_dim * kPagePositions;
    const int left = limit - page * kPagePositions;
    const int columns = left < kPagePositions ? (left + kLanes - 1) / kLanes : 4;
    for (int first = 0; first < rows; first += kTileRows) {
      const float* q = scaled + first * view.key_dim;
      float* target = scores + first * kTilePositions + page * kPagePositions;
      with_rows(rows - first < kTileRows ? rows - first : kTileRows,
                [&]<int kRows>() { score_page<kRows>(q, keys, view.key_dim, columns, target); });
    }
  }
}

// One row's scores -> exp(score - max) in place, for the first limit positions; the rest of the
// last column becomes 0.
void exponentiate(float* scores, int limit, float* max_out, float* sum_out) {
  const int full = limit / kLanes * kLanes, left = limit - full;
  F32x16 highest = simd::set1(kMinusInfinity);
  for (int i = 0; i < full; i += kLanes) highest = simd::max(simd::load(scores + i), highest);
  F32x16 last = simd::set1(kMinusInfinity);
  if (left > 0) {
    last = simd::select(simd::mask_first(left), simd::load(scores + full), last);
    highest = simd::max(last, highest);
  }
  const float max = simd::reduce_max(highest);
  F32x16 sum = simd::set1(0.0f);
  for (int i = 0; i < full; i += kLanes) {
    const F32x16 e = simd::exp(simd::load(scores + i) - simd::set1(max));
    simd::store(scores + i, e);
    sum = sum + e;
  }
  if (left > 0) {
    const F32x16 e = simd::exp(last - simd::set1(max));
    simd::store(scores + full, e);
    sum = sum + e;
  }
  *max_out = max;
  *sum_out = simd::reduce_add(sum);
}

// Where a tile's values lie, and how far each row looks.
struct ValueTile {
  const float* pages[kTilePages];  // of the block's kv head
  int value_dim;
  int limits[kMaxBlockRows];
};

// acc[r][16 v + lane] of kVectors columns of the value dimension; the last column may be narrower
// than 16 (width). limits and weights are the register tile's own.
template <int kRows, int kVectors, bool kNarrow>
void weigh_columns(const ValueTile& tile,
                   const int* limits,
                   const float* weights,
                   int column,
                   int acc_stride,
                   float* acc_out) {
  const int width = tile.value_dim - column;
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) acc[r][v] = simd::set1(0.0f);
  }
  auto load_value = [&](const float* p) __attribute__((always_inline)) {
    if constexpr (kNarrow) {
      return simd::load_first(p, width);
    } else {
      return simd::load(p);
    }
  };
  // Rows are in ascending order of position: the first sees least and the last most.
  const int common = limits[0], last = limits[kRows - 1];
  int j = 0;
  for (int page = 0; j < common; ++page) {
    const float* value = tile.pages[page] + column;
    const int end = common < (page + 1) * kPagePositions ? common : (page + 1) * kPagePositions;
    for (; j < end; ++j, value += tile.value_dim) {
      F32x16 x[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) x[v] = load_value(value + v * kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const F32x16 weight = simd::set1(weights[r * kTilePositions + j]);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) acc[r][v] = simd::fma(x[v], weight, acc[r][v]);
      }
    }
  }
  // Positions that only some rows see. Not even their zeros may be added: what lies there belongs
  // to later tokens, or to nobody yet.
  for (; j < last; ++j) {
    const float* value =
        tile.pages[j / kPagePositions] + j % kPagePositions * tile.value_dim + column;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const F32x16 x = load_value(value + v * kLanes);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        if (j >= limits[r]) continue;
        acc[r][v] = simd::fma(x, simd::set1(weights[r * kTilePositions + j]), acc[r][v]);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      simd::store(acc_out + r * acc_stride + v * kLanes, acc[r][v]);
    }
  }
}

// kVectors columns outside, rows inside: a tile's values of one column (16 KiB) stay in the
// first-level cache while the block's rows pass by.
template <int kVectors, bool kNarrow>
void weigh_rows(const ValueTile& tile, const float* weights, int rows, int column, float* acc) {
  const int stride = padded_dim(tile.value_dim);
  for (int first = 0; first < rows; first += kTileRows) {
    with_rows(rows - first < kTileRows ? rows - first : kTileRows, [&]<int kRows>() {
      // Fewer rows never want fewer columns, so the caller's kVectors suit the last rows too.
      if constexpr (kVectors <= tile_vectors(kRows)) {
        weigh_columns<kRows, kVectors, kNarrow>(tile,
                                                tile.limits + first,
                                                weights + first * kTilePositions,
                                                column,
                                                stride,
                                                acc + first * stride + column);
      }
    });
  }
}

void weigh_tile(const ValueTile& tile, const float* weights, int rows, float* acc) {
  const int value_dim = tile.value_dim;
  int column = 0;
  with_rows(rows < kTileRows ? rows : kTileRows, [&]<int kRows>() {
    constexpr int kVectors = tile_vectors(kRows);
    for (; column + kVectors * kLanes <= value_dim; column += kVectors * kLanes) {
      weigh_rows<kVectors, false>(tile, weights, rows, column, acc);
    }
  });
  for (; column + kLanes <= value_dim; column += kLanes) {
    weigh_rows<1, false>(tile, weights, rows, column, acc);
  }
  if (column < value_dim) weigh_rows<1, true>(tile, weights, rows, column, acc);
}

void compute_tile(const AttentionView& view,
                  const AttentionBlock& block,
                  const float* scaled,
                  int tile,
                  float* partial) {
  alignas(64) float scores[kMaxBlockRows * kTilePositions];
  const int rows = block.rows(), value_dim = view.value_dim;
  float* max = partial + rows * padded_dim(value_dim);
  float* sum = max + rows;
  score_tile(view, block, scaled, tile, scores);

  ValueTile values;
  values.value_dim = value_dim;
  for (int r = 0; r < rows; ++r) {
    values.limits[r] = row_limit(block, r, tile);
    exponentiate(scores + r * kTilePositions, values.limits[r], &max[r], &sum[r]);
  }
  const int limit = row_limit(block, rows - 1, tile);
  for (int page = 0; page * kPagePositions < limit; ++page) {
    const int64_t head = head_index(view, block, tile * kTilePages + page);
    values.pages[page] = view.values + head * kPagePositions * value_dim;
  }
  weigh_tile(values, scores, rows, partial);
}

// Merges a later tile's partial into total, for the rows that see any of that tile.
void merge(const AttentionView& view,
           const AttentionBlock& block,
           int tile,
           const float* partial,
           float* total) {
  const int rows = block.rows(), stride = padded_dim(view.value_dim);
  const float *part_max = partial + rows * stride, *part_sum = part_max + rows;
  float *max = total + rows * stride, *sum = max + rows;
  for (int r = 0; r < rows; ++r) {
    if (row_limit(block, r, tile) == 0) continue;
    const float new_max = max[r] > part_max[r] ? max[r] : part_max[r];
    float factors[kLanes] = {max[r] - new_max, part_max[r] - new_max};
    simd::store(factors, simd::exp(simd::load(factors)));
    const F32x16 x = simd::set1(factors[0]), y = simd::set1(factors[1]);
    for (int i = 0; i < stride; i += kLanes) {
      float* a = total + r * stride + i;
      simd::store(a, simd::fma(simd::load(a), x, simd::load(partial + r * stride + i) * y));
    }
    max[r] = new_max;
    sum[r] = __builtin_fmaf(sum[r], factors[0], part_sum[r] * factors[1]);
  }
}

void write_out(const AttentionView& view, const AttentionBlock& block, const float* total) {
  const int rows = block.rows(), stride = padded_dim(view.value_dim);
  const float* sum = total + rows * (stride + 1);
  for (int r = 0; r < rows; ++r) {
    const int query = r / block.heads, head = r % block.heads;
    float* out = block.out + query * view.out_strides[0] + head * view.out_strides[1];
    for (int i = 0; i < view.value_dim; i += kLanes) {
      const F32x16 y = simd::load(total + r * stride + i) / simd::set1(sum[r]);
      const int left = view.value_dim - i;
      left >= kLanes ? simd::store(out + i, y) : simd::store_first(out + i, y, left);
    }
  }
}

inline constexpr int kMaxPartialFloats = kMaxBlockFloats + 2 * kMaxBlockRows;

void attend(const AttentionView& view, const AttentionBlock& block) {
  alignas(64) float scaled[kMaxBlockFloats];
  alignas(64) float total[kMaxPartialFloats];
  alignas(64) float partial[kMaxPartialFloats];
  scale_queries(view, block, scaled);
  const int tiles = block.tiles();
  compute_tile(view, block, scaled, 0, total);
  for (int tile = 1; tile < tiles; ++tile) {
    compute_tile(view, block, scaled, tile, partial);
    merge(view, block, tile, partial, total);
  }
  write_out(view, block, total);
}

void attend_tile(const AttentionView& view, const AttentionBlock& block, int tile, float* partial) {
  alignas(64) float scaled[kMaxBlockFloats];
  scale_queries(view, block, scaled);
  compute_tile(view, block, scaled, tile, partial);
}

void merge_tiles(const AttentionView& view, const AttentionBlock& block, float* partials) {
  const int64_t step = partial_floats(block.rows(), view.value_dim);
  const int tiles = block.tiles();
  for (int tile = 1; tile < tiles; ++tile) {
    merge(view, block, tile, partials + tile * step, partials);
  }
  write_out(view, block, partials);
}

}  // namespace
}  // namespace sluice::kernels
