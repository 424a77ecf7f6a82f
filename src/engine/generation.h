// One request's way through the model, on the engine thread: prefill, then one token after the
// other. Internal to engine/.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "engine/types.h"
#include "models/model.h"
#include "sampling/sampler.h"

namespace sluice::engine {

// Token counts of the passes that take a prompt's `tokens` uncomputed tokens. Fast mode: chunks of
// `chunk`. Reference mode as mlx-lm's generate_step: chunks over all but the last token, then the
// last one alone.
std::vector<int> prefill_cuts(int tokens, int chunk, Mode mode);

// A sequence in the cache and the tokens that its positions hold.
struct CachedSequence {
  std::unique_ptr<cache::SequenceState> state;
  std::vector<int32_t> tokens;  // state->length() of them
};

// A request that has been checked, with every choice made.
struct GenerationPlan {
  std::span<const int32_t> prompt;  // starts with all tokens of the sequence, and has more
  sampling::SamplingParams sampling;
  int max_tokens = 0;
  int min_tokens = 0;
  std::vector<int32_t> stop_ids;    // end the output
  std::vector<int32_t> banned_ids;  // must not be drawn before min_tokens
  std::vector<int> cuts;            // prefill_cuts of what is not in the sequence yet
  uint32_t prompt_index = 0;
  uint32_t choice_index = 0;
  const std::atomic<bool>* cancel = nullptr;
};

class Generation {
 public:
  // All are borrowed for the lifetime of the object.
  Generation(models::Model& model,
             sampling::Sampler& sampler,
             CachedSequence& sequence,
             const GenerationPlan& plan)
      : model_(model), sampler_(sampler), sequence_(sequence), plan_(plan) {}

  // Runs to the end. May throw what the model throws; the sequence is then unusable.
  Result<GenerateResult> run(const TokenCallback& on_token);

 private:
  bool cancelled() const { return plan_.cancel != nullptr && plan_.cancel->load(); }
  // One settled pass over tokens, evaluated and committed; logits of its last token if wanted.
  Status pass(std::span<const int32_t> tokens, bool want_logits);
  // False if the cancel flag ended it.
  Result<bool> prefill();
  Result<sampling::Draw> draw();
  Status decode(const TokenCallback& on_token);

  models::Model& model_;
  sampling::Sampler& sampler_;
  CachedSequence& sequence_;
  const GenerationPlan& plan_;
  std::vector<float> logits_;  // [V] of the last pass that wanted them
  GenerateResult result_;
};

}  // namespace sluice::engine
