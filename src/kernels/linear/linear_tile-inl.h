// What the float32 and the int8 kernel of a variant share: scales of a group, the store of a tile.
#include "kernels/linear/linear_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::U32x16;

// The generic variant is for correctness: one tile shape and no unrolling keep its code small.
#if defined(SLUICE_ISA_GENERIC)
#define SLUICE_LINEAR_UNROLL
#else
#define SLUICE_LINEAR_UNROLL _Pragma("GCC unroll 16")
#endif

// scales or biases of a group: index 0 or 1.
SLUICE_SIMD F32x16 load_scale(const uint8_t* p, ScaleFormat format, int index) {
  switch (format) {
    case ScaleFormat::kFloat16:
      return simd::load_f16(reinterpret_cast<const uint16_t*>(p) + index * 16);
    case ScaleFormat::kBfloat16:
      return simd::load_bf16(reinterpret_cast<const uint16_t*>(p) + index * 16);
    case ScaleFormat::kFloat32:
      break;
  }
  return simd::load(reinterpret_cast<const float*>(p) + index * 16);
}

// The results of a tile, of kRows rows and the panels from panel_index on, with the bias vector
// added, to y [kRows, n].
template <int kRows, int kPanels>
SLUICE_SIMD void store_tile(const PackedView& weight,
                            const F32x16 (&total)[kRows][kPanels],
                            int panel_index,
                            float* y) {
  for (int p = 0; p < kPanels; ++p) {
    const int column = (panel_index + p) * kPanelRows;
    const int width = weight.n - column < kPanelRows ? weight.n - column : kPanelRows;
    for (int r = 0; r < kRows; ++r) {
      F32x16 result = total[r][p];
      if (weight.bias != nullptr) result = result + simd::load(weight.bias + column);
      float* target = y + int64_t{r} * weight.n + column;
      if (width == kPanelRows) {
        simd::store(target, result);
      } else {
        simd::store_first(target, result, width);
      }
    }
  }
}

// A kernel's Tiles say how many rows the next tile of a block takes (next_rows), compute one tile
// (multiply<kRows, kPanels>) and a range of panels for rows that next_rows gave (multiply_rows).

// kRows rows times a range of panels, kPanels at a time and the rest one by one.
template <class Tiles, int kRows, int kPanels>
void multiply_panels(const PackedView& weight, const float* x, int first, int end, float* y) {
  for (; first + kPanels <= end; first += kPanels) {
    Tiles::template multiply<kRows, kPanels>(weight, x, first, y);
  }
  if constexpr (kPanels > 3) {
    if (first + 3 == end) return Tiles::template multiply<kRows, 3>(weight, x, first, y);
  }
  if constexpr (kPanels > 2) {
    if (first + 2 == end) return Tiles::template multiply<kRows, 2>(weight, x, first, y);
  }
  for (; first < end; ++first) Tiles::template multiply<kRows, 1>(weight, x, first, y);
}

// Panels outside, tiles of rows inside: a panel (or four) stays in the first-level cache while the
// block's rows pass by.
template <class Tiles>
void multiply_block(
    const PackedView& weight, const float* prepared, int rows, int first, int end, float* y) {
  for (int panel = first; panel < end; panel += 4) {
    const int panel_end = panel + 4 < end ? panel + 4 : end;
    for (int row = 0; row < rows;) {
      const int tile = Tiles::next_rows(rows - row);
      Tiles::multiply_rows(weight,
                           prepared + row * weight.prepared_row,
                           tile,
                           panel,
                           panel_end,
                           y + int64_t{row} * weight.n);
      row += tile;
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
