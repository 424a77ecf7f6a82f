// The own CPU kernel for one instruction set variant.
#include "kernels/simd/vec16-inl.h"
#include "kernels/swiglu/swiglu_kernels.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

SLUICE_SIMD F32x16 swiglu(F32x16 gate, F32x16 up) {
  const F32x16 one = simd::set1(1.0f);
  // 0 - gate and not -gate: the vector has no negation. exp(+-0) is the same.
  return gate / (one + simd::exp(simd::set1(0.0f) - gate)) * up;
}

void apply(const float* gate, const float* up, int64_t count, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::store(y + i, swiglu(simd::load(gate + i), simd::load(up + i)));
  }
  const int left = static_cast<int>(count - i);
  if (left > 0) {
    const F32x16 result = swiglu(simd::load_first(gate + i, left), simd::load_first(up + i, left));
    simd::store_first(y + i, result, left);
  }
}

}  // namespace
}  // namespace sluice::kernels
