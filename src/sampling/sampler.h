// From one row of float32 logits to one token.
//
// Order of processing:
//   1. repetition penalty, then frequency and presence penalties (penalties.h)
//   2. logit bias
//   3. the token mask and banned tokens: forbidden entries become -inf
//   4. temperature 0: the largest logit wins, the lowest id among equals; done
//   5. y = (logit - largest logit) / temperature, float32
//   6. top-k, then top-p over what is left, renormalised, then min-p (filters.h)
//   7. Gumbel-max with counter-based noise (gumbel.h)
// Steps 5 and 6 are transformers' order; vLLM has min-p before top-k, which keeps the same tokens
// unless top-p renormalises over what min-p took away. mlx-lm filters first and divides by the
// temperature last; so does llama.cpp by default (top-k, top-p, min-p, temperature): there top-p
// and min-p see the distribution at temperature 1.
//
// The drawn token is a function of (logits, params, history, indices, mask) alone, bit for bit, on
// every machine: only IEEE basic operations, integer sums (softmax_mass.h) and comparisons decide.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/filters.h"
#include "sampling/params.h"
#include "sampling/penalties.h"
#include "sampling/softmax_mass.h"

namespace sluice::sampling {

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm
};

struct DrawInputs {
  std::span<const float> logits = {};  // [V]; -inf means impossible; NaN or +inf is an error
  TokenHistory history = {};           // its size is the index of the token that is drawn
  uint32_t prompt_index = 0;           // which prompt of the request
  uint32_t choice_index = 0;           // which of n answers to it
  // Bit (id % 32) of word (id / 32) allows a token; ceil(V / 32) words, or empty: all allowed.
  std::span<const uint32_t> allowed = {};
  std::span<const int32_t> banned = {};  // forbidden on top of that (EOS before min_tokens)
};

struct Draw {
  int32_t token = 0;
  // With params.logprobs: the drawn token's log-probability, and the most likely tokens in falling
  // order, the lower id among equals. kProcessed is after step 6 (at temperature 0: step 3), so
  // tokens that a filter removed are not listed; kRaw is before step 1.
  std::optional<float> logprob;
  std::vector<TokenLogprob> top;
};

// Keeps scratch memory of a few vocabulary sizes. Not thread safe: one for each thread.
class Sampler {
 public:
  // params must have passed validate() for this vocabulary. Errors: kInvalidArgument (a mask of the
  // wrong size, ids out of range, no token allowed), kInternal (NaN or +inf logits: the model's
  // output is broken).
  Result<Draw> draw(const SamplingParams& params, const DrawInputs& inputs);

 private:
  Status load(std::span<const float> logits);
  Status process(const SamplingParams& params, const DrawInputs& inputs);
  // Turns work_ into log-weights relative to its maximum, divided by the temperature.
  Status scale(float temperature);
  // Makes what the cut does not keep impossible.
  void apply(const Cut& cut);
  void report(int count, Draw& draw);
  LogWeights weights() const { return {work_, chunk_max_}; }

  std::vector<float> work_;       // padded to a multiple of kChunk with -inf
  std::vector<float> chunk_max_;  // of work_, after scale()
  std::vector<float> raw_;
  Penalties penalties_;
  Filters filters_;
};

}  // namespace sluice::sampling
