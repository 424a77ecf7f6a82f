// One draw from a softmax by the Gumbel-max trick (Gumbel 1954; Maddison, Tarlow, Minka 2014):
// argmax of y[i] + G[i] with independent standard Gumbel G[i] falls on i with probability
// softmax(y)[i]. G[i] is a pure function of the choice and the entry, so a draft model that draws
// for the same choice uses the same noise, and filters never shift anybody's numbers.
#pragma once

#include <cstdint>

#include "sampling/philox.h"
#include "sampling/softmax_mass.h"

namespace sluice::sampling {

// Which choice a random number belongs to. token_index is the absolute index of the token that is
// drawn, in prompt and output together.
struct Choice {
  uint64_t seed = 0;
  uint32_t prompt_index = 0;
  uint32_t choice_index = 0;
  uint32_t token_index = 0;
};

// The noise of one vocabulary entry: word (entry % 4) of Philox4x32-10 at counter
// (entry / 4, token_index, choice_index, prompt_index) under the key (low, high half of the seed),
// as u = (word + 1/2) / 2^32 and G = -log(-log u) in double. Lies within (-3.2, 22.9).
double gumbel_noise(const Choice& choice, uint32_t entry);

// The entry with the largest y[i] + G[i] in double, the lower id among equals. At least one
// y[i] must be finite.
int32_t draw_gumbel_max(const LogWeights& weights, const Choice& choice);

}  // namespace sluice::sampling
