// The 16-lane vector in plain C++: the definition that the other variants must equal bit for bit.
// Included by vec16-inl.h only.

struct F32x16 {
  float lane[16];
};
struct U32x16 {
  uint32_t lane[16];
};
struct Mask16 {
  uint32_t bits;  // bit i is lane i
};

#define SLUICE_VEC16_EACH(result, expression)               \
  for (int i = 0; i < 16; ++i) result.lane[i] = expression; \
  return result

SLUICE_SIMD F32x16 set1(float value) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, value);
}
SLUICE_SIMD F32x16 load(const float* p) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, p[i]);
}
SLUICE_SIMD void store(float* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.lane[i];
}
SLUICE_SIMD F32x16 load_first(const float* p, int count) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, i < count ? p[i] : 0.0f);
}
SLUICE_SIMD void store_first(float* p, F32x16 a, int count) {
  for (int i = 0; i < count; ++i) p[i] = a.lane[i];
}
SLUICE_SIMD F32x16 operator+(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] + b.lane[i]);
}
SLUICE_SIMD F32x16 operator-(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] - b.lane[i]);
}
SLUICE_SIMD F32x16 operator*(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] * b.lane[i]);
}
SLUICE_SIMD F32x16 operator/(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] / b.lane[i]);
}
SLUICE_SIMD F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]));
}
SLUICE_SIMD F32x16 max(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]);
}
SLUICE_SIMD F32x16 min(F32x16 a, F32x16 b) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]);
}
SLUICE_SIMD F32x16 sqrt(F32x16 a) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, __builtin_sqrtf(a.lane[i]));
}

SLUICE_SIMD Mask16 mask_first(int count) {
  return {(1u << count) - 1};
}
SLUICE_SIMD Mask16 less(F32x16 a, F32x16 b) {
  Mask16 r{0};
  for (int i = 0; i < 16; ++i) r.bits |= (a.lane[i] < b.lane[i] ? 1u : 0u) << i;
  return r;
}
SLUICE_SIMD Mask16 not_nan(F32x16 a) {
  Mask16 r{0};
  for (int i = 0; i < 16; ++i) r.bits |= (a.lane[i] == a.lane[i] ? 1u : 0u) << i;
  return r;
}
SLUICE_SIMD F32x16 select(Mask16 mask, F32x16 yes, F32x16 no) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, (mask.bits >> i & 1) != 0 ? yes.lane[i] : no.lane[i]);
}

SLUICE_SIMD U32x16 set1_u32(uint32_t value) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, value);
}
SLUICE_SIMD U32x16 load_u32(const uint32_t* p) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, p[i]);
}
SLUICE_SIMD U32x16 operator&(U32x16 a, U32x16 b) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] & b.lane[i]);
}
SLUICE_SIMD U32x16 operator|(U32x16 a, U32x16 b) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] | b.lane[i]);
}
SLUICE_SIMD U32x16 operator+(U32x16 a, U32x16 b) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] + b.lane[i]);
}
template <int kBits>
SLUICE_SIMD U32x16 shift_left(U32x16 a) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] << kBits);
}
template <int kBits>
SLUICE_SIMD U32x16 shift_right(U32x16 a) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, a.lane[i] >> kBits);
}
SLUICE_SIMD F32x16 as_f32(U32x16 a) {
  F32x16 r;
  __builtin_memcpy(&r, &a, sizeof r);
  return r;
}
SLUICE_SIMD U32x16 as_u32(F32x16 a) {
  U32x16 r;
  __builtin_memcpy(&r, &a, sizeof r);
  return r;
}
SLUICE_SIMD F32x16 convert_i32(U32x16 a) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, static_cast<float>(static_cast<int32_t>(a.lane[i])));
}
SLUICE_SIMD U32x16 load_u8(const uint8_t* p) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, p[i]);
}
SLUICE_SIMD U32x16 load_u16(const uint16_t* p) {
  U32x16 r;
  SLUICE_VEC16_EACH(r, p[i]);
}
SLUICE_SIMD void store_u8(uint8_t* p, U32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<uint8_t>(a.lane[i]);
}
SLUICE_SIMD void store_u16(uint16_t* p, U32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<uint16_t>(a.lane[i]);
}

SLUICE_SIMD float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
  uint32_t bits;
  if (exponent == 0x1f) {  // infinity, or a NaN made quiet
    bits = sign | 0x7f800000u | mantissa << 13 | (mantissa != 0 ? 0x400000u : 0u);
  } else if (exponent != 0) {
    bits = sign | (exponent + 112) << 23 | mantissa << 13;
  } else {  // zero and subnormals: mantissa * 2^-24, exact in float
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits |= sign;
  }
  float result;
  __builtin_memcpy(&result, &bits, sizeof result);
  return result;
}
// Rounds to nearest, ties to even, as vcvtps2ph does.
SLUICE_SIMD uint16_t float_to_half(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x3ff));
  if (bits >= 0x477ff000u) return sign | 0x7c00;  // rounds to 65536 or more
  if (bits >= 0x38800000u) {                      // a normal half
    const uint32_t rebiased = bits - 0x38000000u;
    return static_cast<uint16_t>(sign | (rebiased + 0xfff + (rebiased >> 13 & 1)) >> 13);
  }
  // A subnormal half: adding 0.5 puts its ulp, 2^-24, at the last place of the float.
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, sizeof magnitude);
  const float shifted = magnitude + 0.5f;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  return static_cast<uint16_t>(sign | (bits - 0x3f000000u));
}
SLUICE_SIMD F32x16 load_f16(const uint16_t* p) {
  F32x16 r;
  SLUICE_VEC16_EACH(r, half_to_float(p[i]));
}
SLUICE_SIMD void store_f16(uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = float_to_half(a.lane[i]);
}

SLUICE_SIMD float reduce_add(F32x16 a) {
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) a.lane[i] = a.lane[i] + a.lane[i + half];
  }
  return a.lane[0];
}
SLUICE_SIMD float reduce_max(F32x16 a) {
  for (int half = 8; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) {
      a.lane[i] = a.lane[i] > a.lane[i + half] ? a.lane[i] : a.lane[i + half];
    }
  }
  return a.lane[0];
}

#undef SLUICE_VEC16_EACH
