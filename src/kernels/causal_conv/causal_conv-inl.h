// The own CPU kernel for one instruction set variant; causal_conv_kernels.h has the order of sums.
#include "kernels/causal_conv/causal_conv_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

SLUICE_SIMD F32x16 silu(F32x16 x) {
  return x / (simd::set1(1.0f) + simd::exp(simd::set1(0.0f) - x));
}

// inputs: the last taps inputs, oldest first.
void run_token(const ConvBlock& b, const float* const* inputs, float* y) {
  for (int c = 0; c < b.channels; c += kLanes) {
    const int left = b.channels - c;
    F32x16 sum = simd::set1(0.0f);
    if (left >= kLanes) {
      for (int j = 0; j < b.taps; ++j) {
        sum = simd::fma(
            simd::load(inputs[j] + c), simd::load(b.weight + j * b.weight_stride + c), sum);
      }
      simd::store(y + c, silu(sum));
    } else {
      for (int j = 0; j < b.taps; ++j) {
        sum = simd::fma(simd::load_first(inputs[j] + c, left),
                        simd::load_first(b.weight + j * b.weight_stride + c, left),
                        sum);
      }
      simd::store_first(y + c, silu(sum), left);
    }
  }
}

void run(const ConvBlock& b) {
  const float* inputs[kMaxConvTaps];
  for (int j = 0; j + 1 < b.taps; ++j) inputs[j + 1] = b.tail + j * b.tail_stride;
  for (int i = 0; i < b.count; ++i) {
    const int64_t token = b.tokens[i];
    for (int j = 0; j + 1 < b.taps; ++j) inputs[j] = inputs[j + 1];
    inputs[b.taps - 1] = b.x + token * b.x_stride;
    run_token(b, inputs, b.y + token * b.y_stride);
  }
  if (!b.write_tail || b.count == 0) return;
  // A row of the old tail that stays moves towards the front, so front to back is safe.
  for (int j = 0; j + 1 < b.taps; ++j) {
    float* target = b.tail + j * b.tail_stride;
    for (int c = 0; c < b.channels; ++c) target[c] = inputs[j + 1][c];
  }
}

}  // namespace
}  // namespace sluice::kernels
