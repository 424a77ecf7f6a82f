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

SLUICE_SIMD_CLONES float max_of(std::span<const float> x) {
  constexpr int kLanes = 16;
  float lanes[kLanes];
  for (auto& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  for (size_t base = 0; base < x.size(); base += kLanes) {
    for (int i = 0; i < kLanes; ++i) lanes[i] = x[base + i] > lanes[i] ? x[base + i] : lanes[i];
  }
  float best = lanes[0];
  for (float lane : lanes) best = lane > best ? lane : best;
  return best;
}

}  // namespace sluice::sampling
