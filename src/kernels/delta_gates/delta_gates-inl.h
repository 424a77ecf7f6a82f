// The own CPU kernel for one instruction set variant.
#include "kernels/delta_gates/delta_gates_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

// ln(1 + u) for u in [0, 1]: 2 atanh(s), s = u / (2 + u) <= 1 / 3, by its series up to s^17, of
// which the rest is below 1e-10 of the whole.
SLUICE_SIMD F32x16 log1p_unit(F32x16 u) {
  const F32x16 s = u / (simd::set1(2.0f) + u);
  const F32x16 square = s * s;
  F32x16 p = simd::set1(1.0f / 17);
  p = simd::fma(p, square, simd::set1(1.0f / 15));
  p = simd::fma(p, square, simd::set1(1.0f / 13));
  p = simd::fma(p, square, simd::set1(1.0f / 11));
  p = simd::fma(p, square, simd::set1(1.0f / 9));
  p = simd::fma(p, square, simd::set1(1.0f / 7));
  p = simd::fma(p, square, simd::set1(1.0f / 5));
  p = simd::fma(p, square, simd::set1(1.0f / 3));
  p = p * square;
  const F32x16 twice = s + s;
  return simd::fma(twice, p, twice);
}

// max(x, 0) + ln(1 + e^-|x|).
SLUICE_SIMD F32x16 softplus(F32x16 x) {
  const F32x16 zero = simd::set1(0.0f), negated = zero - x;
  const F32x16 u = simd::exp(simd::min(x, negated));
  return simd::max(x, zero) + log1p_unit(u);
}

SLUICE_SIMD F32x16 decay(F32x16 a, F32x16 a_log, F32x16 dt_bias) {
  const F32x16 rate = simd::set1(0.0f) - simd::exp(a_log);
  return simd::exp(rate * softplus(a + dt_bias));
}

SLUICE_SIMD F32x16 sigmoid(F32x16 x) {
  const F32x16 one = simd::set1(1.0f);
  return one / (one + simd::exp(simd::set1(0.0f) - x));
}

void apply(const float* a,
           const float* b,
           const float* a_log,
           const float* dt_bias,
           int heads,
           float* g,
           float* beta) {
  for (int h = 0; h < heads; h += kLanes) {
    const int count = heads - h < kLanes ? heads - h : kLanes;
    simd::store_first(g + h,
                      decay(simd::load_first(a + h, count),
                            simd::load_first(a_log + h, count),
                            simd::load_first(dt_bias + h, count)),
                      count);
    simd::store_first(beta + h, sigmoid(simd::load_first(b + h, count)), count);
  }
}

}  // namespace
}  // namespace sluice::kernels
