// The own CPU kernel for one instruction set variant; rms_norm_kernels.h has the order of the sum.
#include "kernels/rms_norm/rms_norm_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

// 1 / sqrt(mean(x^2) + eps).
SLUICE_SIMD float inverse_rms(const float* x, int width, float eps) {
  const int full = width / kLanes * kLanes, left = width - full;
  // Four accumulators hide the latency of the additions.
  F32x16 sum[4] = {simd::set1(0.0f), simd::set1(0.0f), simd::set1(0.0f), simd::set1(0.0f)};
  int i = 0;
  for (; i + 4 * kLanes <= full; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int a = 0; a < 4; ++a) {
      const F32x16 v = simd::load(x + i + a * kLanes);
      sum[a] = simd::fma(v, v, sum[a]);
    }
  }
  // At most three full blocks and a part of one: block b still belongs to accumulator b mod 4.
#pragma GCC unroll 4
  for (int a = 0; a < 4; ++a) {
    const int begin = i + a * kLanes;
    if (begin >= width) break;
    const F32x16 v = begin < full ? simd::load(x + begin) : simd::load_first(x + begin, left);
    sum[a] = simd::fma(v, v, sum[a]);
  }
  const float total = simd::reduce_add((sum[0] + sum[1]) + (sum[2] + sum[3]));
  const F32x16 mean = simd::set1(total) / simd::set1(static_cast<float>(width));
  float inverse[kLanes];
  simd::store(inverse, simd::set1(1.0f) / simd::sqrt(mean + simd::set1(eps)));
  return inverse[0];
}

[[maybe_unused]] void normalize(
    const float* x, const float* weight, int width, float eps, float* y) {
  const int full = width / kLanes * kLanes, left = width - full;
  const F32x16 inverse = simd::set1(inverse_rms(x, width, eps));
  for (int i = 0; i < full; i += kLanes) {
    simd::store(y + i, simd::load(x + i) * inverse * simd::load(weight + i));
  }
  if (left > 0) {
    const F32x16 v = simd::load_first(x + full, left) * inverse;
    simd::store_first(y + full, v * simd::load_first(weight + full, left), left);
  }
}

}  // namespace
}  // namespace sluice::kernels
