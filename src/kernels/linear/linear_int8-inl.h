// The own CPU linear kernel with int8 activations for one instruction set variant; linear_kernels.h
// has the layout and the order of the sums. Integer sums are exact, so a variant is free in how it
// forms them, and all give the same bits.
#include "kernels/linear/linear_tile-inl.h"

namespace sluice::kernels {
namespace {

// Keeps a sum in its register: GCC would collect all products of a group, spilling most of them, in
// order to add them up in a tree.
#if defined(SLUICE_ISA_AVX512)
SLUICE_SIMD void settle(__m512i& sum) {
  __asm__ volatile("" : "+v"(sum));
}
#elif defined(SLUICE_ISA_AVX2)
SLUICE_SIMD void settle(__m256i& sum) {
  __asm__ volatile("" : "+x"(sum));
}
#endif

// Sums of products of unsigned bytes of weights with signed bytes of activations, 16 lanes of four
// bytes each. NibbleSums take weights up to 15 and at most the eight words of an activation group.
#if defined(SLUICE_ISA_AVX512) && defined(SLUICE_ISA_VNNI)
struct Sums {
  __m512i v = _mm512_setzero_si512();
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) { v = _mm512_dpbusd_epi32(v, weights.v, x.v); }
  SLUICE_SIMD F32x16 total() const { return simd::convert_i32({v}); }
};
using NibbleSums = Sums;
using ByteSums = Sums;
#elif defined(SLUICE_ISA_AVX512)
// Pairs of products in 16 bits, where neither a pair nor the sum of eight leaves their range:
// 8 * 2 * 15 * 128 = 30720.
struct NibbleSums {
  __m512i v = _mm512_setzero_si512();
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {
    v = _mm512_add_epi16(v, _mm512_maddubs_epi16(weights.v, x.v));
    settle(v);
  }
  SLUICE_SIMD F32x16 total() const {
    return simd::convert_i32({_mm512_madd_epi16(v, _mm512_set1_epi16(1))});
  }
};
// A pair of products of whole bytes leaves 16 bits: both factors are widened instead.
struct ByteSums {
  __m512i v = _mm512_setzero_si512();
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {
    const __m512i even = _mm512_and_si512(weights.v, _mm512_set1_epi16(0xff));
    const __m512i even_x = _mm512_srai_epi16(_mm512_slli_epi16(x.v, 8), 8);
    v = _mm512_add_epi32(v, _mm512_madd_epi16(even, even_x));
    const __m512i odd = _mm512_srli_epi16(weights.v, 8);
    v = _mm512_add_epi32(v, _mm512_madd_epi16(odd, _mm512_srai_epi16(x.v, 8)));
    settle(v);
  }
  SLUICE_SIMD F32x16 total() const { return simd::convert_i32({v}); }
};
#elif defined(SLUICE_ISA_AVX2) && defined(SLUICE_ISA_VNNI)
struct Sums {
  __m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {
    lo = _mm256_dpbusd_avx_epi32(lo, weights.lo, x.lo);
    hi = _mm256_dpbusd_avx_epi32(hi, weights.hi, x.hi);
  }
  SLUICE_SIMD F32x16 total() const { return simd::convert_i32({lo, hi}); }
};
using NibbleSums = Sums;
using ByteSums = Sums;
#elif defined(SLUICE_ISA_AVX2)
// As for AVX-512 above.
struct NibbleSums {
  __m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {
    lo = _mm256_add_epi16(lo, _mm256_maddubs_epi16(weights.lo, x.lo));
    hi = _mm256_add_epi16(hi, _mm256_maddubs_epi16(weights.hi, x.hi));
    settle(lo);
    settle(hi);
  }
  SLUICE_SIMD F32x16 total() const {
    const __m256i ones = _mm256_set1_epi16(1);
    return simd::convert_i32({_mm256_madd_epi16(lo, ones), _mm256_madd_epi16(hi, ones)});
  }
};
struct ByteSums {
  __m256i lo = _mm256_setzero_si256(), hi = _mm256_setzero_si256();
  static SLUICE_SIMD __m256i add(__m256i sum, __m256i weights, __m256i even_x, __m256i odd_x) {
    const __m256i even = _mm256_and_si256(weights, _mm256_set1_epi16(0xff));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(even, even_x));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_srli_epi16(weights, 8), odd_x));
  }
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {  // x is the same in both halves
    const __m256i even_x = _mm256_srai_epi16(_mm256_slli_epi16(x.lo, 8), 8);
    const __m256i odd_x = _mm256_srai_epi16(x.lo, 8);
    lo = add(lo, weights.lo, even_x, odd_x);
    hi = add(hi, weights.hi, even_x, odd_x);
    settle(lo);
    settle(hi);
  }
  SLUICE_SIMD F32x16 total() const { return simd::convert_i32({lo, hi}); }
};
#else
struct Sums {
  int32_t lane[16] = {};
  SLUICE_SIMD void add(U32x16 weights, U32x16 x) {
    for (int i = 0; i < 16; ++i) {
      for (int shift = 0; shift < 32; shift += 8) {
        const int32_t weight = static_cast<uint8_t>(weights.lane[i] >> shift);
        lane[i] += weight * static_cast<int8_t>(x.lane[i] >> shift);
      }
    }
  }
  SLUICE_SIMD F32x16 total() const {
    F32x16 result;
    for (int i = 0; i < 16; ++i) result.lane[i] = static_cast<float>(lane[i]);
    return result;
  }
};
using NibbleSums = Sums;
using ByteSums = Sums;
#endif

// What a word of packed weights holds: kParts words of four bytes each, part i of which meets word
// kParts * w + i of an activation group.
struct NibbleWeights {
  using Sums = NibbleSums;
  static constexpr int kParts = 2;
  static SLUICE_SIMD U32x16 part(U32x16 word, int index) {
    return (index == 0 ? word : simd::shift_right<4>(word)) & simd::set1_u32(0x0f0f0f0f);
  }
};
struct ByteWeights {
  using Sums = ByteSums;
  static constexpr int kParts = 1;
  static SLUICE_SIMD U32x16 part(U32x16 word, int) { return word; }
};

inline constexpr int kGroupWords = kInt8Group / 4;
// Words of a row of a tile for each group: values, then scale and sum.
inline constexpr int kPreparedWords = kGroupWords + 2;

// sums[r][p] += the products of an activation group: x [kGroupWords][kRows].
template <class Weights, int kRows, int kPanels>
SLUICE_SIMD void multiply_group(const uint8_t* const (&panel)[kPanels],
                                const uint32_t* x,
                                typename Weights::Sums (&sums)[kRows][kPanels]) {
  SLUICE_LINEAR_UNROLL
  for (int w = 0; w < kGroupWords / Weights::kParts; ++w) {
    U32x16 word[kPanels];
    for (int p = 0; p < kPanels; ++p) {
      word[p] = simd::load_u32(reinterpret_cast<const uint32_t*>(panel[p]) + w * 16);
    }
    SLUICE_LINEAR_UNROLL
    for (int i = 0; i < Weights::kParts; ++i) {
      U32x16 part[kPanels];
      for (int p = 0; p < kPanels; ++p) part[p] = Weights::part(word[p], i);
      for (int r = 0; r < kRows; ++r) {
        const U32x16 activations = simd::set1_u32(x[(w * Weights::kParts + i) * kRows + r]);
        for (int p = 0; p < kPanels; ++p) sums[r][p].add(part[p], activations);
      }
    }
  }
}

template <class Weights, int kRows, int kPanels>
SLUICE_SIMD void multiply_tile(const PackedView& weight,
                               const float* prepared,
                               int panel_index,
                               float* y) {
  const uint8_t* panel[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    panel[p] = weight.panels + (panel_index + p) * weight.panel_bytes;
  }
  F32x16 total[kRows][kPanels];
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) total[r][p] = simd::set1(0.0f);
  }
  constexpr int kGroupBytes = kGroupWords / Weights::kParts * 64;
  const int parts = weight.group / kInt8Group;
  const int scale_bytes = weight.scale_format == ScaleFormat::kFloat32 ? 64 : 32;
  for (int g = 0; g < weight.groups; ++g) {
    const uint8_t* scales[kPanels];
    for (int p = 0; p < kPanels; ++p) scales[p] = panel[p] + parts * kGroupBytes;
    for (int part = 0; part < parts; ++part) {
      typename Weights::Sums sums[kRows][kPanels];
      multiply_group<Weights>(panel, reinterpret_cast<const uint32_t*>(prepared), sums);
      const float* x_scales = prepared + kGroupWords * kRows;
      for (int p = 0; p < kPanels; ++p) {
        const F32x16 scale = load_scale(scales[p], weight.scale_format, 0);
        const F32x16 bias = load_scale(scales[p], weight.scale_format, 1);
        for (int r = 0; r < kRows; ++r) {
          const F32x16 product = scale * simd::set1(x_scales[r]);
          total[r][p] = simd::fma(sums[r][p].total(), product, total[r][p]);
          total[r][p] = simd::fma(bias, simd::set1(x_scales[kRows + r]), total[r][p]);
        }
        panel[p] += kGroupBytes;
      }
      prepared += kPreparedWords * kRows;
    }
    for (int p = 0; p < kPanels; ++p) panel[p] = scales[p] + 2 * scale_bytes;
  }
  store_tile(weight, total, panel_index, y);
}

#if defined(SLUICE_ISA_AVX512)
inline constexpr int kMaxTileRows = 8;
#elif defined(SLUICE_ISA_AVX2)
inline constexpr int kMaxTileRows = 4;
#else
inline constexpr int kMaxTileRows = 1;
#endif

template <class Weights>
struct Int8Tiles {
  static SLUICE_SIMD int next_rows(int left) {
    if (left >= kMaxTileRows) return kMaxTileRows;
    return left < 4 ? left : 4;
  }

  template <int kRows, int kPanels>
  static void multiply(const PackedView& weight, const float* x, int panel, float* y) {
    multiply_tile<Weights, kRows, kPanels>(weight, x, panel, y);
  }

  static void multiply_rows(
      const PackedView& weight, const float* x, int rows, int first, int end, float* y) {
    switch (rows) {
#if defined(SLUICE_ISA_AVX512)
      case 1:
        return multiply_panels<Int8Tiles, 1, 4>(weight, x, first, end, y);
      case 2:
        return multiply_panels<Int8Tiles, 2, 4>(weight, x, first, end, y);
      case 3:
        return multiply_panels<Int8Tiles, 3, 2>(weight, x, first, end, y);
      case 4:
        return multiply_panels<Int8Tiles, 4, 2>(weight, x, first, end, y);
      case 8:
        return multiply_panels<Int8Tiles, 8, 1>(weight, x, first, end, y);
#elif defined(SLUICE_ISA_AVX2)
      case 1:
        return multiply_panels<Int8Tiles, 1, 4>(weight, x, first, end, y);
      case 2:
        return multiply_panels<Int8Tiles, 2, 2>(weight, x, first, end, y);
      case 3:
        return multiply_panels<Int8Tiles, 3, 1>(weight, x, first, end, y);
      case 4:
        return multiply_panels<Int8Tiles, 4, 1>(weight, x, first, end, y);
#else
      case 1:
        return multiply_panels<Int8Tiles, 1, 1>(weight, x, first, end, y);
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
  if (weight.format == WeightFormat::kNibble) {
    multiply_block<Int8Tiles<NibbleWeights>>(weight, prepared, rows, first_panel, end_panel, y);
  } else {
    multiply_block<Int8Tiles<ByteWeights>>(weight, prepared, rows, first_panel, end_panel, y);
  }
}

SLUICE_SIMD F32x16 abs(F32x16 x) {
  return simd::as_f32(simd::as_u32(x) & simd::set1_u32(0x7fffffff));
}

// Of eight bytes 0, 2, 4, 6 and then 1, 3, 5, 7: what the two parts of a word of nibbles meet.
SLUICE_SIMD uint64_t even_bytes_first(uint64_t bytes) {
  uint64_t even = bytes & 0x00ff00ff00ff00ff, odd = bytes >> 8 & 0x00ff00ff00ff00ff;
  even = (even | even >> 8) & 0x0000ffff0000ffff;
  odd = (odd | odd >> 8) & 0x0000ffff0000ffff;
  return ((even | even >> 16) & 0xffffffff) | (odd | odd >> 16) << 32;
}

// Quantizes the group x[0 .. 31]; values [kGroupWords], stride words apart.
SLUICE_SIMD void quantize_group(
    const float* x, bool nibbles, int stride, uint32_t* values, float* scale, float* sum) {
  const F32x16 a = simd::load(x), b = simd::load(x + 16);
  const float largest = simd::reduce_max(simd::max(abs(a), abs(b)));
  // A NaN, or an infinity times the 0 that it leaves of inverse, makes the sum a NaN.
  const float inverse = largest < kInt8ZeroBelow ? 0.0f : 127.0f / largest;
  *scale = largest < kInt8ZeroBelow ? 0.0f : largest / 127.0f;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the float.
  const F32x16 magic = simd::set1(12582912.0f), factor = simd::set1(inverse);
  const F32x16 rounded_a = simd::fma(a, factor, magic), rounded_b = simd::fma(b, factor, magic);
  *sum = *scale * simd::reduce_add((rounded_a - magic) + (rounded_b - magic));
  alignas(32) uint64_t bytes[kInt8Group / 8];
  const U32x16 low = simd::set1_u32(0xff);
  simd::store_u8(reinterpret_cast<uint8_t*>(bytes), simd::as_u32(rounded_a) & low);
  simd::store_u8(reinterpret_cast<uint8_t*>(bytes) + 16, simd::as_u32(rounded_b) & low);
  for (int i = 0; i < kInt8Group / 8; ++i) {
    const uint64_t pair = nibbles ? even_bytes_first(bytes[i]) : bytes[i];
    values[2 * i * stride] = static_cast<uint32_t>(pair);
    values[(2 * i + 1) * stride] = static_cast<uint32_t>(pair >> 32);
  }
}

void prepare(
    const PackedView& weight, const float* x, int64_t x_stride, int rows, float* prepared) {
  const bool nibbles = weight.format == WeightFormat::kNibble;
  const int groups = weight.k / kInt8Group;
  for (int row = 0; row < rows;) {
    const int tile = Int8Tiles<NibbleWeights>::next_rows(rows - row);
    for (int r = 0; r < tile; ++r) {
      const float* source = x + (row + r) * x_stride;
      float* target = prepared + row * weight.prepared_row + r;
      for (int g = 0; g < groups; ++g) {
        float* scale = target + kGroupWords * tile;
        quantize_group(source + g * kInt8Group,
                       nibbles,
                       tile,
                       reinterpret_cast<uint32_t*>(target),
                       scale,
                       scale + tile);
        target += kPreparedWords * tile;
      }
    }
    row += tile;
  }
}

}  // namespace
}  // namespace sluice::kernels
