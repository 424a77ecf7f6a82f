// The packed weight of the own CPU linear kernel and its function table, in plain types: this
// header is included by the translation units of single instruction set variants (see
// simd/vec16-inl.h for what those may include).
//
// Layout. W [N, K] is cut into panels of 16 output rows, the lanes; N is padded with zero rows. A
// panel holds its groups along K one after the other; a group holds its values, k ascending, and,
// if quantized, then 16 scales and 16 biases:
//   kNibble  uint32 word [group / 8][16 lanes], value k = 8 w + j in bits 4 j .. 4 j + 3 of word w
//   kByte    uint32 word [group / 4][16 lanes], value k = 4 w + j in bits 8 j .. 8 j + 7
//   dense    value [group][16 lanes]; K padded with zeros to a multiple of 16
//
// Activations are float32, or int8 in groups of kInt8Group along K (quantized weights only):
//   scale = max|x| / 127, q = x * (127 / max|x|) rounded to the nearest integer, ties to even;
//   both 0 if max|x| < kInt8ZeroBelow; sum = scale * (sum of q)
//
// Order of the sums, which defines every bit of the result (design rule 1); per output element:
//   a_g = fma over the group's k ascending of (q_k, x_k), from 0
//   quantized: t = fma(a_g, scale_g, t), then t = fma(bias_g, sum_g(x), t), g ascending, from 0
//   dense:     t = t + a_g
//   int8 activations: for each activation group j within weight group g, both ascending,
//              t = fma(sum of q_w q_x, scale_g * scale_j, t), then t = fma(bias_g, sum_j, t), from
//              0, where the sum of integers is exact, also as a float
//   y = t + b if there is a bias vector
// where sum_g(x) adds the group's 16-lane blocks in order and then the lanes by the fixed tree.
// With float32 activations a quantized value is not shifted down: q 2^s, masked out of its word,
// meets x 2^-s. Both factors are exact, so the product is too (unless |x| < 2^-98).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice::kernels {

inline constexpr int kPanelRows = 16;
// K is summed in pieces of this length for dense weights: short chains round less.
inline constexpr int kDenseGroup = 128;
inline constexpr int kInt8Group = 32;
// Below this, 127 / max|x| could be infinite.
inline constexpr float kInt8ZeroBelow = 1e-35f;

enum class WeightFormat : uint8_t { kNibble, kByte, kFloat32, kFloat16, kBfloat16 };
enum class ScaleFormat : uint8_t { kFloat32, kFloat16, kBfloat16 };
// What the kernel makes of float32 activations before it multiplies.
enum class Activations : uint8_t { kFloat32, kInt8 };

struct PackedView {
  const uint8_t* panels = nullptr;  // 64-byte aligned
  const float* bias = nullptr;      // [padded N] or null
  int64_t panel_bytes = 0;
  int n = 0;
  int k = 0;
  int padded_k = 0;  // to a multiple of 16
  int group = 0;     // kDenseGroup if dense
  int groups = 0;    // the last one of a dense weight may be short
  int bits = 0;      // 0: dense
  WeightFormat format = WeightFormat::kNibble;
  ScaleFormat scale_format = ScaleFormat::kFloat32;
  int num_panels = 0;
  Activations activations = Activations::kFloat32;
  // Floats (or words of four int8) of a prepared activation row: values, sums, scales.
  int64_t prepared_row = 0;
};

struct LinearKernels {
  // Rows of the largest tile. Rows are handled in blocks; prepare and multiply cut a block into
  // tiles alike, so a block given to one must be given whole to the other.
  int max_tile_rows;

  // x [rows, k] with row stride x_stride (floats) -> prepared [rows * prepared_row].
  void (*prepare)(
      const PackedView& weight, const float* x, int64_t x_stride, int rows, float* prepared);

  // y[r, 16 p ...] for the block's rows and panels first_panel <= p < end_panel; y has row stride
  // n, lanes beyond n are not written.
  void (*multiply)(const PackedView& weight,
                   const float* prepared,
                   int rows,
                   int first_panel,
                   int end_panel,
                   float* y);
};

}  // namespace sluice::kernels
