// The own CPU kernel for one instruction set variant.
#include "kernels/gated_rms_norm/gated_rms_norm_kernels.h"
#include "kernels/rms_norm/rms_norm-inl.h"

namespace sluice::kernels {
namespace {

SLUICE_SIMD F32x16 gated(F32x16 normed, F32x16 z) {
  return z / (simd::set1(1.0f) + simd::exp(simd::set1(0.0f) - z)) * normed;
}

void normalize_and_gate(
    const float* x, const float* z, const float* weight, int width, float eps, float* y) {
  const F32x16 inverse = simd::set1(inverse_rms(x, width, eps));
  for (int i = 0; i < width; i += kLanes) {
    const int count = width - i < kLanes ? width - i : kLanes;
    const F32x16 normed =
        simd::load_first(x + i, count) * inverse * simd::load_first(weight + i, count);
    simd::store_first(y + i, gated(normed, simd::load_first(z + i, count)), count);
  }
}

}  // namespace
}  // namespace sluice::kernels
