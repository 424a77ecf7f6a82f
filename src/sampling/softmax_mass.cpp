#include "sampling/softmax_mass.h"

#include <limits>

#include "sampling/simd_clones.h"

namespace sluice::sampling {

SLUICE_SIMD_CLONES uint64_t total_mass(std::span<const float> y) {
  uint64_t sum = 0;
  for (size_t base = 0; base < y.size(); base += kChunk) {
    // In two loops: the first one vectorizes, the conversion to 64 bits does not.
    float scaled[kChunk];
    for (int i = 0; i < kChunk; ++i) scaled[i] = exp_nonpositive(y[base + i]) * 0x1p42f;
    for (int i = 0; i < kChunk; ++i) sum += static_cast<uint64_t>(static_cast<int64_t>(scaled[i]));
  }
  return sum;
}

double log_of_mass(uint64_t mass) {
  constexpr double kLogUnit = 42 * 0.69314718055994530942;
  return exact_log(static_cast<double>(mass)) - kLogUnit;
}

SLUICE_SIMD_CLONES float fill_chunk_max(std::span<const float> x, std::vector<float>& chunk_max) {
  constexpr int kLanes = 16;
  chunk_max.resize(x.size() / kChunk);
  float best = -std::numeric_limits<float>::infinity();
  for (size_t c = 0; c < chunk_max.size(); ++c) {
    const float* chunk = x.data() + c * kChunk;
    float lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const float a = chunk[i] > chunk[i + 16] ? chunk[i] : chunk[i + 16];
      const float b = chunk[i + 32] > chunk[i + 48] ? chunk[i + 32] : chunk[i + 48];
      lanes[i] = a > b ? a : b;
    }
    for (int width = kLanes / 2; width > 0; width /= 2) {
      for (int i = 0; i < width; ++i) {
        lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
      }
    }
    chunk_max[c] = lanes[0];
    best = lanes[0] > best ? lanes[0] : best;
  }
  return best;
}

}  // namespace sluice::sampling
