// One request on its way through the engine: what it asked for, what is known of its sequence, and
// what of that is in the cache. Internal to engine/; engine thread only, but for make_plan.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "cache/sequence_state.h"
#include "engine/engine.h"
#include "engine/types.h"
#include "sampling/sampler.h"

namespace sluice::engine {

// A request that has been checked, with every choice made.
struct RowPlan {
  sampling::SamplingParams sampling;
  int prompt_tokens = 0;
  int max_tokens = 0;
  int min_tokens = 0;
  std::vector<int32_t> stop_ids;    // end the output
  std::vector<int32_t> banned_ids;  // must not be drawn before min_tokens
  int prefill_chunk = 0;            // tokens of one pass at most
  bool reuse_prefix = true;
  uint32_t prompt_index = 0;
  uint32_t choice_index = 0;
};

// Checks a request against the model; the errors are those of Engine::submit. Any thread.
Result<RowPlan> make_plan(const GenerateRequest& request, const ModelInfo& info, Mode mode);

// Tokens of the next pass over a prompt of which `rest` tokens are not computed, under a limit of
// `chunk`. Reference mode cuts as mlx-lm's generate_step: chunks over all but the last token, then
// the last one alone.
int next_prefill_cut(int rest, int chunk, Mode mode);

class Row {
 public:
  Row(std::vector<int32_t> prompt, RowPlan plan, std::shared_ptr<Sink> sink);

  const RowPlan& plan() const { return plan_; }
  Sink& sink() const { return *sink_; }
  const std::vector<int32_t>& known() const { return known_; }  // prompt, then what was drawn
  int computed() const { return state_ ? state_->length() : 0; }
  int uncomputed() const { return static_cast<int>(known_.size()) - computed(); }
  bool wants_one() const { return uncomputed() == 1; }  // a decode row, as far as a pass can see

  cache::SequenceState* state() const { return state_.get(); }
  int pages() const { return state_ ? static_cast<int>(state_->pages().size()) : 0; }
  // Enters the running rows with this sequence, which holds the first tokens of known().
  void start(std::unique_ptr<cache::SequenceState> state);
  // Leaves them, for good or to come back: the tokens stay, what was computed goes.
  std::unique_ptr<cache::SequenceState> take_state() { return std::move(state_); }

  // The row's part of a pass has failed together with others': it is run alone to find out which
  // of them is at fault.
  bool alone() const { return alone_; }
  void set_alone(bool alone) { alone_ = alone; }

  // Draws the next token from the logits of the last known one and hands it to the sink. True: the
  // output is complete.
  Result<bool> advance(sampling::Sampler& sampler, std::span<const float> logits);
  // What the request got so far, ended for this reason.
  GenerateResult result(FinishReason reason) const;
  FinishReason finish_reason() const { return finish_reason_; }

 private:
  using Clock = std::chrono::steady_clock;

  int output_tokens() const { return static_cast<int>(known_.size()) - plan_.prompt_tokens; }

  const RowPlan plan_;
  const std::shared_ptr<Sink> sink_;
  std::vector<int32_t> known_;
  std::unique_ptr<cache::SequenceState> state_;
  bool alone_ = false;

  FinishReason finish_reason_ = FinishReason::kStop;
  std::optional<int32_t> stop_token_;
  bool started_ = false;
  int cached_tokens_ = 0;
  Clock::time_point start_, first_token_, last_token_;
};

}  // namespace sluice::engine
