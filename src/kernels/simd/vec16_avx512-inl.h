// The 16-lane vector as one 512-bit register (AVX-512 F, BW, VL, DQ). Included by vec16-inl.h only.

struct F32x16 {
  __m512 v;
};
struct U32x16 {
  __m512i v;
};
struct Mask16 {
  __mmask16 bits;
};

SLUICE_SIMD F32x16 set1(float value) {
  return {_mm512_set1_ps(value)};
}
SLUICE_SIMD F32x16 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
SLUICE_SIMD void store(float* p, F32x16 a) {
  _mm512_storeu_ps(p, a.v);
}
SLUICE_SIMD Mask16 mask_first(int count) {
  return {static_cast<__mmask16>((1u << count) - 1)};
}
SLUICE_SIMD F32x16 load_first(const float* p, int count) {
  return {_mm512_maskz_loadu_ps(mask_first(count).bits, p)};
}
SLUICE_SIMD void store_first(float* p, F32x16 a, int count) {
  _mm512_mask_storeu_ps(p, mask_first(count).bits, a.v);
}
SLUICE_SIMD F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
SLUICE_SIMD F32x16 max(F32x16 a, F32x16 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 min(F32x16 a, F32x16 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
SLUICE_SIMD F32x16 sqrt(F32x16 a) {
  return {_mm512_sqrt_ps(a.v)};
}

SLUICE_SIMD Mask16 less(F32x16 a, F32x16 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
SLUICE_SIMD Mask16 not_nan(F32x16 a) {
  return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q)};
}
SLUICE_SIMD F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  return {_mm512_mask_blend_ps(mask.bits, no.v, yes.v)};
}

SLUICE_SIMD U32x16 set1_u32(uint32_t value) {
  return {_mm512_set1_epi32(static_cast<int>(value))};
}
SLUICE_SIMD U32x16 load_u32(const uint32_t* p) {
  return {_mm512_loadu_si512(p)};
}
SLUICE_SIMD U32x16 operator&(U32x16 a, U32x16 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
SLUICE_SIMD U32x16 operator|(U32x16 a, U32x16 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
SLUICE_SIMD U32x16 operator+(U32x16 a, U32x16 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
template <int kBits>
SLUICE_SIMD U32x16 shift_left(U32x16 a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
SLUICE_SIMD U32x16 shift_right(U32x16 a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
SLUICE_SIMD F32x16 as_f32(U32x16 a) {
  return {_mm512_castsi512_ps(a.v)};
}
SLUICE_SIMD U32x16 as_u32(F32x16 a) {
  return {_mm512_castps_si512(a.v)};
}
SLUICE_SIMD F32x16 convert_i32(U32x16 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
SLUICE_SIMD U32x16 load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
SLUICE_SIMD U32x16 load_u16(const uint16_t* p) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
SLUICE_SIMD void store_u16(uint16_t* p, U32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}
SLUICE_SIMD void store_u8(uint8_t* p, U32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
SLUICE_SIMD F32x16 load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
SLUICE_SIMD void store_f16(uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

SLUICE_SIMD float reduce_add(F32x16 a) {
  const __m256 v8 = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}
SLUICE_SIMD float reduce_max(F32x16 a) {
  const __m256 v8 = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}
