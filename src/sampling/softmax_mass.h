// Softmax sums without rounding: every e^y is rounded once to an integer multiple of 2^-42, and
// integers add up to the same sum in every order and grouping. So the full-logits path, any split
// of the vocabulary and a later fused top-k head agree bit for bit on log-sum-exp and on the top-p
// cut (design rule 5 asks for fixed blocks; this asks for nothing).
#pragma once

#include <cstdint>
#include <span>

#include "sampling/exact_math.h"

namespace sluice::sampling {

// Entries are worked on in chunks of this many; buffers are padded to it with -inf.
inline constexpr int kChunk = 64;

// The largest vocabulary that cannot overflow a sum: 2^21 * 2^42 < 2^64.
inline constexpr int kMaxVocab = 1 << 21;

// e^y in units of 2^-42, for y <= 0 (-inf gives 0).
inline uint64_t mass_of(float y) {
  return static_cast<uint64_t>(static_cast<int64_t>(exp_nonpositive(y) * 0x1p42f));
}

// Sum of mass_of over y; its size must be a multiple of kChunk.
uint64_t total_mass(std::span<const float> y);

// The logarithm of a sum of masses, > 0.
double log_of_mass(uint64_t mass);

// The largest of x (a multiple of kChunk long); -inf if all are. No NaN allowed.
float max_of(std::span<const float> x);

}  // namespace sluice::sampling
