#include "kernels/simd/vec16-inl.h"
#include "kernels/simd/vec16_probe.h"

namespace sluice::kernels {
namespace {

void probe_exp(const float* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store(y + i, simd::exp(simd::load(x + i)));
}
void probe_from_f16(const uint16_t* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store(y + i, simd::load_f16(x + i));
}
void probe_to_f16(const float* x, uint16_t* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store_f16(y + i, simd::load(x + i));
}
void probe_from_bf16(const uint16_t* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store(y + i, simd::load_bf16(x + i));
}
void probe_to_bf16(const float* x, uint16_t* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store_bf16(y + i, simd::load(x + i));
}
void probe_from_u8(const uint8_t* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store(y + i, simd::convert_i32(simd::load_u8(x + i)));
}
void probe_low_bytes(const float* x, uint8_t* y, int count) {
  for (int i = 0; i < count; i += 16) simd::store_u8(y + i, simd::as_u32(simd::load(x + i)));
}
void probe_arithmetic(const float* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) {
    const simd::F32x16 a = simd::load(x + i), b = simd::load(x + count - 16 - i);
    const simd::F32x16 product = simd::fma(a, b, a - b) * (a + b);
    const simd::F32x16 root = simd::sqrt(simd::max(a, b) * simd::max(a, b)) / simd::min(a, b);
    simd::store(y + i, simd::select(simd::less(a, b), product, root));
  }
}
void probe_reduce(const float* x, float* y, int count) {
  for (int i = 0; i < count; i += 16) {
    y[i / 8] = simd::reduce_add(simd::load(x + i));
    y[i / 8 + 1] = simd::reduce_max(simd::load(x + i));
  }
}
void probe_first(const float* x, float* y, float* all, int n) {
  const simd::F32x16 v = simd::load_first(x, n);
  simd::store_first(y, v, n);
  simd::store(all, v);
}

}  // namespace
}  // namespace sluice::kernels

#define SLUICE_VEC16_PROBE                                                                  \
  {                                                                                         \
    probe_exp, probe_from_f16, probe_to_f16, probe_from_bf16, probe_to_bf16, probe_from_u8, \
        probe_low_bytes, probe_arithmetic, probe_reduce, probe_first                        \
  }
