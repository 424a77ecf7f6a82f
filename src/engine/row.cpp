#include "engine/row.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

int next_prefill_cut(int rest, int chunk, Mode mode) {
  if (mode == Mode::kReference && rest > 1) return std::min(rest - 1, chunk);
  return std::min(rest, chunk);
}

Row::Row(std::vector<int32_t> prompt, RowPlan plan, std::shared_ptr<Sink> sink)
    : plan_(std::move(plan)), sink_(std::move(sink)), known_(std::move(prompt)) {}

void Row::start(std::unique_ptr<cache::SequenceState> state) {
  state_ = std::move(state);
  if (std::exchange(started_, true)) return;
  cached_tokens_ = state_->length();
  start_ = Clock::now();
}

Result<bool> Row::advance(sampling::Sampler& sampler, std::span<const float> logits) {
  const int index = output_tokens();
  sampling::DrawInputs inputs;
  inputs.logits = logits;
  const auto all = std::span<const int32_t>(known_);
  inputs.history = {all.first(plan_.prompt_tokens), all.subspan(plan_.prompt_tokens)};
  inputs.prompt_index = plan_.prompt_index;
  inputs.choice_index = plan_.choice_index;
  if (index < plan_.min_tokens) inputs.banned = plan_.banned_ids;
  SLUICE_TRY(const auto drawn, sampler.draw(plan_.sampling, inputs));

  TokenEvent event;
  event.token = drawn.token;
  event.index = index;
  event.stop_token = contains(plan_.stop_ids, drawn.token);
  event.logprob = drawn.logprob;
  event.top = drawn.top;
  known_.push_back(drawn.token);
  last_token_ = Clock::now();
  if (index == 0) first_token_ = last_token_;
  const bool wants_more = sink_->on_token(event);

  if (event.stop_token) stop_token_ = drawn.token;
  if (event.stop_token || !wants_more) {
    finish_reason_ = FinishReason::kStop;
    return true;
  }
  finish_reason_ = FinishReason::kLength;
  return output_tokens() >= plan_.max_tokens;
}

GenerateResult Row::result(FinishReason reason) const {
  GenerateResult result;
  result.tokens.assign(known_.begin() + plan_.prompt_tokens, known_.end());
  result.finish_reason = reason;
  result.stop_token = stop_token_;
  result.seed = plan_.sampling.seed;
  result.sampling = plan_.sampling;
  result.usage = {plan_.prompt_tokens, cached_tokens_, output_tokens()};
  if (!result.tokens.empty()) {
    result.timings = {seconds(first_token_ - start_), seconds(last_token_ - first_token_)};
  } else if (started_) {
    result.timings.prefill_seconds = seconds(Clock::now() - start_);
  }
  return result;
}

}  // namespace sluice::engine
