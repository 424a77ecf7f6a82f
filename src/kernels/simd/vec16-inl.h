// A virtual vector of 16 float lanes, with the same bits on every instruction set variant: one
// 512-bit register, two 256-bit registers or 16 scalars. Sums are taken over fixed trees, products
// are fused only where fma() says so, and exp is our own.
//
// Included by translation units that are compiled for one variant each (<op>_generic.cpp,
// <op>_avx2.cpp, <op>_avx512.cpp; flags in kernels/CMakeLists.txt), which define exactly one of
// SLUICE_ISA_GENERIC, SLUICE_ISA_AVX2 and SLUICE_ISA_AVX512 first.
//
// Everything here and in the -inl.h files of the ops is in an unnamed namespace, and these
// translation units include no header with inline functions or templates of external linkage
// (standard containers, algorithms, fmt, MLX): the linker keeps one copy of such a function for
// the whole program, and it might be the one with instructions that this processor lacks.
// Each exports one table of function pointers (simd/isa_tables.h).
//
// Operations, on all lanes side by side (F32x16 and U32x16 by value, pointers unaligned):
//   set1 load store load_first store_first(count in 0..16; other lanes read as 0, stay unwritten)
//   + - * / fma(a, b, c) = a * b + c   sqrt   max(a, b) = a > b ? a : b   min likewise
//   less not_nan mask_first select(mask, yes, no)   reduce_add reduce_max (lane i with i + 8, 4, 2,
//   1) set1_u32 load_u32 & | + shift_left<n> shift_right<n> as_f32 as_u32 (same bits) convert_i32
//   (each lane as int32 -> float)   load_u8 load_u16 -> U32x16, store_u8 store_u16 (low bits)
//   load_f16 store_f16 load_bf16 store_bf16 (16 values; stores round to nearest even) exp
#pragma once

#if defined(SLUICE_ISA_GENERIC) + defined(SLUICE_ISA_AVX2) + defined(SLUICE_ISA_AVX512) != 1
#error "define exactly one of SLUICE_ISA_GENERIC, SLUICE_ISA_AVX2, SLUICE_ISA_AVX512"
#endif

#include <stddef.h>
#include <stdint.h>

#if !defined(SLUICE_ISA_GENERIC)
#include <immintrin.h>
#endif

// Kernel code depends on inlining: a vector passed through memory costs more than the arithmetic.
#define SLUICE_SIMD inline __attribute__((always_inline))

namespace sluice::kernels::simd {
namespace {

inline constexpr int kLanes = 16;

#if defined(SLUICE_ISA_AVX512)
#include "kernels/simd/vec16_avx512-inl.h"
#elif defined(SLUICE_ISA_AVX2)
#include "kernels/simd/vec16_avx2-inl.h"
#else
#include "kernels/simd/vec16_generic-inl.h"
#endif

SLUICE_SIMD F32x16 load_bf16(const uint16_t* p) {
  return as_f32(shift_left<16>(load_u16(p)));
}

SLUICE_SIMD void store_bf16(uint16_t* p, F32x16 a) {
  const U32x16 bits = as_u32(a);
  const U32x16 odd = shift_right<16>(bits) & set1_u32(1);
  const U32x16 rounded = shift_right<16>(bits + odd + set1_u32(0x7fff));
  // Rounding could carry a NaN into infinity: it keeps its upper bits and is made quiet instead.
  const U32x16 quiet = shift_right<16>(bits) | set1_u32(0x40);
  store_u16(p, as_u32(select(not_nan(a), as_f32(rounded), as_f32(quiet))));
}

// e^x. Error at most 1.1 ulp (vec16_test.cpp) where the result is at least 2^-125; exactly 0 below
// that (x < kExpZeroBelow, -infinity included), infinity above the largest float, NaN for NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2; e^r by the degree 6 polynomial of Cephes' expf (Moshier,
// netlib); ln 2 in two parts so that n * high is exact.
inline constexpr float kExpZeroBelow = -86.6f;         // n >= -125: 2^(n - 1) is a normal float
inline constexpr float kExpInfinityAbove = 88.72283f;  // ln of the largest float, rounded down

SLUICE_SIMD F32x16 exp(F32x16 x) {
  // The order of operands lets a NaN through (max and min return their second operand then).
  const F32x16 clamped = min(set1(kExpInfinityAbove), max(set1(kExpZeroBelow), x));
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the float.
  const F32x16 magic = set1(12582912.0f);
  const F32x16 shifted = fma(clamped, set1(1.44269504f), magic);
  const F32x16 n = shifted - magic;
  F32x16 r = fma(n, set1(-0.693359375f), clamped);
  r = fma(n, set1(2.12194440e-4f), r);
  F32x16 p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(p, r * r, r) + set1(1.0f);
  // 2^(n - 1), then twice that: 2^128 itself is no float.
  const F32x16 scale = as_f32(shift_left<23>(as_u32(shifted) + set1_u32(126)));
  F32x16 result = p * scale * set1(2.0f);
  result = select(less(set1(kExpInfinityAbove), x), as_f32(set1_u32(0x7f800000)), result);
  return select(less(x, set1(kExpZeroBelow)), set1(0.0f), result);
}

}  // namespace
}  // namespace sluice::kernels::simd
