// Softmax sums without rounding: every e^y is rounded once to an integer multiple of 2^-42, and
// integers add up to the same sum in every order and grouping. So the full-logits path, any split
// of the vocabulary and a later fused top-k head agree bit for bit on log-sum-exp and on the top-p
// cut (design rule 5 asks for fixed blocks; this asks for nothing).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// chunk_max[c] = the largest of x[c * kChunk, ...); -inf if all are. No NaN allowed. Returns the
// largest of all.
float fill_chunk_max(std::span<const float> x, std::vector<float>& chunk_max);

// Log-weights of a vocabulary, maximum 0, -inf for entries that cannot be drawn, padded with them
// to a multiple of kChunk; and for every chunk a bound that none of its entries exceeds, with which
// most chunks are passed over.
struct LogWeights {
  std::span<const float> y;
  std::span<const float> chunk_max;  // [y.size() / kChunk]
};

}  // namespace sluice::sampling
