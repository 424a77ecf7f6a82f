// The own CPU kernel for one instruction set variant.
#include "kernels/sigmoid_gate/sigmoid_gate_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

SLUICE_SIMD F32x16 sigmoid_gate(F32x16 x, F32x16 gate) {
  const F32x16 one = simd::set1(1.0f);
  // 0 - gate and not -gate: the vector has no negation. exp(+-0) is the same.
  return x / (one + simd::exp(simd::set1(0.0f) - gate));
}

void apply(const float* x, const float* gate, int64_t count, float* y) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    simd::store(y + i, sigmoid_gate(simd::load(x + i), simd::load(gate + i)));
  }
  const int left = static_cast<int>(count - i);
  if (left > 0) {
    const F32x16 result =
        sigmoid_gate(simd::load_first(x + i, left), simd::load_first(gate + i, left));
    simd::store_first(y + i, result, left);
  }
}

}  // namespace
}  // namespace sluice::kernels
