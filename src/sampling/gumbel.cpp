#include "sampling/gumbel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/exact_math.h"
#include "sampling/simd_clones.h"

namespace sluice::sampling {
namespace {

constexpr int kBlocks = kChunk / 4;  // Philox blocks for one chunk of entries

PhiloxCounter counter_of(const Choice& choice, uint32_t entry) {
  return {entry / 4, choice.token_index, choice.choice_index, choice.prompt_index};
}

PhiloxKey key_of(const Choice& choice) {
  return {static_cast<uint32_t>(choice.seed), static_cast<uint32_t>(choice.seed >> 32)};
}

double noise_of_word(uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
  return -exact_log(-exact_log(u));
}

// The best entry so far. Its score only grows, whatever the order of the chunks.
struct Best {
  double score = -std::numeric_limits<double>::infinity();
  int32_t id = -1;

  void offer(double other, int32_t other_id) {
    if (other > score || (other == score && other_id < id)) *this = {other, other_id};
  }
};

// Words w for which an entry of at most `highest` may still reach `score`: ~w < limit. From
// -log u >= 1 - u follows G <= -log(1 - u), so 1 - u <= e^(highest - score) is necessary; the
// margins cover every rounding, so that no winner is lost and the bound never shows in a result.
uint64_t candidate_limit(double highest, double score) {
  const double gap = highest - score;
  if (gap >= 0) return uint64_t{1} << 32;
  const double limit = std::exp(gap) * 0x1p32 * 1.0001 + 2.0;
  return limit < 0x1p32 ? static_cast<uint64_t>(limit) : uint64_t{1} << 32;
}

using ChunkWords = uint32_t[4][kBlocks];

SLUICE_SIMD_CLONES void fill_words(const PhiloxCounter& first,
                                   const PhiloxKey& key,
                                   ChunkWords& words) {
  philox_4x32_10<kBlocks>(first, key, words);
}

void draw_in_chunk(const float* y, int32_t first, float highest, const Choice& choice, Best& best) {
  ChunkWords words;
  fill_words(counter_of(choice, static_cast<uint32_t>(first)), key_of(choice), words);
  const uint64_t limit = candidate_limit(highest, best.score);
  for (int block = 0; block < kBlocks; ++block) {
    for (int w = 0; w < 4; ++w) {
      if (~words[w][block] >= limit) continue;
      const int i = block * 4 + w;
      if (y[i] == -std::numeric_limits<float>::infinity()) continue;
      best.offer(static_cast<double>(y[i]) + noise_of_word(words[w][block]), first + i);
    }
  }
}

}  // namespace

double gumbel_noise(const Choice& choice, uint32_t entry) {
  const auto words = philox_4x32_10(counter_of(choice, entry), key_of(choice));
  return noise_of_word(words[entry % 4]);
}

int32_t draw_gumbel_max(const LogWeights& weights, const Choice& choice) {
  // The noise costs more than reading y, so the chunk with the largest y goes first: its score
  // rules most other entries, and often whole chunks, out before a logarithm is taken.
  constexpr double kLargestNoise = 22.9;
  const auto highest = weights.chunk_max;
  const size_t first = std::max_element(highest.begin(), highest.end()) - highest.begin();
  Best best;
  auto visit = [&](size_t c) {
    const size_t entry = c * kChunk;
    draw_in_chunk(weights.y.data() + entry, static_cast<int32_t>(entry), highest[c], choice, best);
  };
  visit(first);
  for (size_t c = 0; c < highest.size(); ++c) {
    if (c != first && highest[c] + kLargestNoise >= best.score) visit(c);
  }
  return best.id;
}

}  // namespace sluice::sampling
