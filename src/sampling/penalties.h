// Repetition, presence and frequency penalties, computed from token ids at every step: nothing to
// keep in step with rollback or preemption.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/params.h"

namespace sluice::sampling {

// The tokens before the one to draw. The boundary is the request's own and never moves, whatever
// is recomputed.
struct TokenHistory {
  std::span<const int32_t> prompt;
  std::span<const int32_t> output;

  size_t size() const { return prompt.size() + output.size(); }
};

// Keeps its scratch memory between calls; one for each thread.
class Penalties {
 public:
  // Changes logits in place: repetition first, then frequency and presence (vLLM's order), float32.
  // kInvalidArgument if a token id within the window lies outside [0, logits.size()).
  Status apply(std::span<float> logits, const TokenHistory& history, const SamplingParams& params);

 private:
  struct Counts {
    bool seen = false;    // in the window, prompt or output
    int32_t outputs = 0;  // occurrences in the window's output part
  };
  std::vector<Counts> counts_;    // by token id; all zero between calls
  std::vector<int32_t> touched_;  // ids with counts, each once
};

}  // namespace sluice::sampling
