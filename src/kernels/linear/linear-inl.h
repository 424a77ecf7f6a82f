// The own CPU linear kernel for one instruction set variant; linear_kernels.h has the layout and
// the order of the sums. A tile is kRows activation rows x kPanels panels, so that a value that was
// taken out of its word serves kRows rows. How rows and panels are cut into tiles changes speed
// only: an output element's operations are the same in every tile.
#include "kernels/linear/linear_tile-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::U32x16;

inline constexpr int kBlock = 16;  // k per block of prepared activations

// Weights of kBits-wide fields in 32-bit words, one word a lane.
template <int kBits>
struct WordWeights {
  static constexpr bool kQuantized = true;
  static constexpr int kFields = 32 / kBits;
  static constexpr int kBlockBytes = kBlock / kFields * 64;

  // 2^-s, what an activation at this place of a word is multiplied with when it is prepared. The
  // last field is shifted down, since its sign bit would make it negative.
  static SLUICE_SIMD F32x16 activation_scale() {
    float scale[16];
    for (int i = 0; i < 16; ++i) {
      const int field = i % kFields;
      scale[i] = field == kFields - 1 ? 1.0f : 1.0f / static_cast<float>(1u << (kBits * field));
    }
    return simd::load(scale);
  }

  // value(k) of a block's k, unrolled by the caller so that all but the word is constant.
  static SLUICE_SIMD F32x16 value(const uint8_t* block, int k) {
    const U32x16 word = simd::load_u32(reinterpret_cast<const uint32_t*>(block) + k / kFields * 16);
    const int field = k % kFields;
    if (field == kFields - 1) return simd::convert_i32(simd::shift_right<32 - kBits>(word));
    return simd::convert_i32(word & simd::set1_u32(((1u << kBits) - 1) << (kBits * field)));
  }
};

struct Float32Weights {
  static constexpr bool kQuantized = false;
  static constexpr int kBlockBytes = kBlock * 64;
  static SLUICE_SIMD F32x16 value(const uint8_t* block, int k) {
    return simd::load(reinterpret_cast<const float*>(block) + k * 16);
  }
};
struct Float16Weights {
  static constexpr bool kQuantized = false;
  static constexpr int kBlockBytes = kBlock * 32;
  static SLUICE_SIMD F32x16 value(const uint8_t* block, int k) {
    return simd::load_f16(reinterpret_cast<const uint16_t*>(block) + k * 16);
  }
};
struct Bfloat16Weights {
  static constexpr bool kQuantized = false;
  static constexpr int kBlockBytes = kBlock * 32;
  static SLUICE_SIMD F32x16 value(const uint8_t* block, int k) {
    return simd::load_bf16(reinterpret_cast<const uint16_t*>(block) + k * 16);
  }
};

// acc[r][p] = fma(value k of panel p, activation k of row r, acc[r][p]). The loops are nested so
// that the fewest values are alive at once: the compiler keeps this order, and spills if it must.
template <class Weights, int kRows, int kPanels>
SLUICE_SIMD void multiply_column(const uint8_t* const (&panel)[kPanels],
                                 const float* x,
                                 int k,
                                 F32x16 (&acc)[kRows][kPanels]) {
  if constexpr (kRows == 1) {
    const F32x16 activation = simd::set1(x[k]);
    for (int p = 0; p < kPanels; ++p) {
      acc[0][p] = simd::fma(Weights::value(panel[p], k), activation, acc[0][p]);
    }
  } else {
    F32x16 value[kPanels];
    for (int p = 0; p < kPanels; ++p) value[p] = Weights::value(panel[p], k);
    for (int r = 0; r < kRows; ++r) {
      const F32x16 activation = simd::set1(x[r * kBlock + k]);
      for (int p = 0; p < kPanels; ++p) acc[r][p] = simd::fma(value[p], activation, acc[r][p]);
    }
  }
}

template <class Weights, int kRows, int kPanels>
void multiply_tile(const PackedView& weight, const float* x, int panel_index, float* y) {
  const uint8_t* panel[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    panel[p] = weight.panels + (panel_index + p) * weight.panel_bytes;
  }
  const float* sums = x + int64_t{kRows} * weight.padded_k;
  F32x16 total[kRows][kPanels];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) total[r][p] = simd::set1(0.0f);
  }
  const int blocks = weight.padded_k / kBlock;
  const int group_blocks = weight.group / kBlock;
  const int scale_bytes = weight.scale_format == ScaleFormat::kFloat32 ? 64 : 32;
  for (int first = 0; first < blocks; first += group_blocks) {
    F32x16 acc[kRows][kPanels];
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPanels; ++p) acc[r][p] = simd::set1(0.0f);
    }
    const int end = first + group_blocks < blocks ? first + group_blocks : blocks;
    for (int block = first; block < end; ++block) {
      SLUICE_LINEAR_UNROLL
      for (int k = 0; k < kBlock; ++k) multiply_column<Weights>(panel, x, k, acc);
      x += kRows * kBlock;
      for (int p = 0; p < kPanels; ++p) panel[p] += Weights::kBlockBytes;
    }
    if constexpr (Weights::kQuantized) {
      for (int p = 0; p < kPanels; ++p) {
        const F32x16 scale = load_scale(panel[p], weight.scale_format, 0);
        const F32x16 bias = load_scale(panel[p], weight.scale_format, 1);
        panel[p] += 2 * scale_bytes;
        for (int r = 0; r < kRows; ++r) {
          total[r][p] = simd::fma(acc[r][p], scale, total[r][p]);
          total[r][p] = simd::fma(bias, simd::set1(sums[r]), total[r][p]);
        }
      }
      sums += kRows;
    } else {
      for (int r = 0; r < kRows; ++r) {
        for (int p = 0; p < kPanels; ++p) total[r][p] = total[r][p] + acc[r][p];
      }
    }
  }
  store_tile(weight, total, panel_index, y);
}

// Rows of the next tile of a block with this many rows left, and the tile shapes of each variant:
// as many accumulators as its registers hold, but enough panels to hide the latency of an fma.
#if defined(SLUICE_ISA_AVX512)
inline constexpr int kMaxTileRows = 12;
SLUICE_SIMD int tile_rows(int left) {
  return left >= 12 ? 12 : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
#elif defined(SLUICE_ISA_AVX2)
inline constexpr int kMaxTileRows = 6;
SLUICE_SIMD int tile_rows(int left) {
  return left >= 6 ? 6 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
#else
inline constexpr int kMaxTileRows = 1;
SLUICE_SIMD int tile_rows(int) {
  return 1;
}
#endif

template <class Weights>
struct FloatTiles {
  static SLUICE_SIMD int next_rows(int left) { return tile_rows(left); }

  template <int kRows, int kPanels>
  static SLUICE_SIMD void multiply(const PackedView& weight, const float* x, int panel, float* y) {
    multiply_tile<Weights, kRows, kPanels>(weight, x, panel, y);
  }

  static void multiply_rows(
      const PackedView& weight, const float* x, int rows, int first, int end, float* y) {
    switch (rows) {
#if defined(SLUICE_ISA_AVX512)
      case 1:
        return multiply_panels<FloatTiles, 1, 4>(weight, x, first, end, y);
      case 2:
        return multiply_panels<FloatTiles, 2, 4>(weight, x, first, end, y);
      case 4:
        return multiply_panels<FloatTiles, 4, 2>(weight, x, first, end, y);
      case 8:
        return multiply_panels<FloatTiles, 8, 2>(weight, x, first, end, y);
      case 12:
        return multiply_panels<FloatTiles, 12, 2>(weight, x, first, end, y);
#elif defined(SLUICE_ISA_AVX2)
      case 1:
        return multiply_panels<FloatTiles, 1, 4>(weight, x, first, end, y);
      case 2:
        return multiply_panels<FloatTiles, 2, 2>(weight, x, first, end, y);
      case 4:
        return multiply_panels<FloatTiles, 4, 1>(weight, x, first, end, y);
      case 6:
        return multiply_panels<FloatTiles, 6, 1>(weight, x, first, end, y);
#else
      case 1:
        return multiply_panels<FloatTiles, 1, 1>(weight, x, first, end, y);
#endif
    }
  }
};

void multiply(const PackedView& weight,
              const float* prepared,
              int rows,
              int first_panel,
              int end_panel,
              float* y) {
  switch (weight.format) {
    case WeightFormat::kNibble:
      return multiply_block<FloatTiles<WordWeights<4>>>(
          weight, prepared, rows, first_panel, end_panel, y);
    case WeightFormat::kByte:
      return multiply_block<FloatTiles<WordWeights<8>>>(
          weight, prepared, rows, first_panel, end_panel, y);
    case WeightFormat::kFloat32:
      return multiply_block<FloatTiles<Float32Weights>>(
          weight, prepared, rows, first_panel, end_panel, y);
    case WeightFormat::kFloat16:
      return multiply_block<FloatTiles<Float16Weights>>(
          weight, prepared, rows, first_panel, end_panel, y);
    case WeightFormat::kBfloat16:
      return multiply_block<FloatTiles<Bfloat16Weights>>(
          weight, prepared, rows, first_panel, end_panel, y);
  }
}

// Of a tile: [padded_k / 16][rows][16] scaled values, then [groups][rows] sums.
void prepare(
    const PackedView& weight, const float* x, int64_t x_stride, int rows, float* prepared) {
  F32x16 scale = simd::set1(1.0f);
  if (weight.format == WeightFormat::kNibble) scale = WordWeights<4>::activation_scale();
  if (weight.format == WeightFormat::kByte) scale = WordWeights<8>::activation_scale();
  const bool quantized =
      weight.format == WeightFormat::kNibble || weight.format == WeightFormat::kByte;
  const int blocks = weight.padded_k / kBlock;
  const int group_blocks = weight.group / kBlock;
  for (int row = 0; row < rows;) {
    const int tile = tile_rows(rows - row);
    float* values = prepared + row * weight.prepared_row;
    float* sums = values + int64_t{tile} * weight.padded_k;
    for (int r = 0; r < tile; ++r) {
      const float* source = x + (row + r) * x_stride;
      F32x16 sum = simd::set1(0.0f);
      for (int block = 0; block < blocks; ++block) {
        const int left = weight.k - block * kBlock;
        const F32x16 v = left >= kBlock ? simd::load(source + block * kBlock)
                                        : simd::load_first(source + block * kBlock, left);
        simd::store(values + (int64_t{block} * tile + r) * kBlock, v * scale);
        if (!quantized) continue;
        sum = block % group_blocks == 0 ? v : sum + v;
        if ((block + 1) % group_blocks == 0) {
          sums[block / group_blocks * tile + r] = simd::reduce_add(sum);
        }
      }
    }
    row += tile;
  }
}

}  // namespace
}  // namespace sluice::kernels
