#include "chat/answer_events.h"

#include <utility>

namespace sluice::chat {
Failure failure_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
      return {FailureKind::kInvalidRequest, "", error.message};
    case ErrorCode::kResourceExhausted:
      return {FailureKind::kQueueFull, "", error.message};
    case ErrorCode::kCancelled:
      return {FailureKind::kCancelled, "", error.message};
    default:
      return {FailureKind::kInternal, "", error.message};
  }
}

Result<AnswerEvents> AnswerEvents::create(const text::Tokenizer& tokenizer,
                                          const engine::GenerateRequest& request,
                                          const std::vector<std::string>& stop,
                                          EventChannel& channel) {
  SLUICE_TRY(auto detokenizer, text::DetokenizerStream::create(tokenizer, true, request.prompt));
  SLUICE_TRY(auto matcher, text::StopMatcher::create(stop));
  return AnswerEvents(
      tokenizer, std::move(detokenizer), std::move(matcher), request.min_tokens, channel);
}

TokenLogprob AnswerEvents::named(int32_t token, float logprob) const {
  auto bytes = tokenizer_->token_bytes(token);
  if (!bytes) bytes = tokenizer_->id_to_token(token);
  return {bytes.value_or(""), logprob};
}

bool AnswerEvents::show(std::string text) {
  if (text.empty()) return true;
  return channel_->push(
      TextDelta{Channel::kContent, std::move(text), std::exchange(logprobs_, {})});
}

bool AnswerEvents::on_token(const engine::TokenEvent& event) {
  if (event.stop_token) return true;
  if (event.logprob) {
    DrawnLogprob drawn{named(event.token, *event.logprob), {}};
    for (const auto& [token, logprob] : event.top) drawn.top.push_back(named(token, logprob));
    logprobs_.push_back(std::move(drawn));
  }
  auto piece = detokenizer_.step(event.token);
  if (!piece.ok()) {
    error_ = piece.error();
    return false;
  }
  // Stop strings count from the token on with which the answer may end.
  if (event.index + 1 < min_tokens_) return show(std::move(*piece));
  return show(matcher_.push(*piece)) && !matcher_.stopped();
}

void AnswerEvents::finish(const Result<engine::GenerateResult>& result) {
  if (!result.ok()) error_ = result.error();
  if (!error_ && !matcher_.stopped()) {
    auto rest = detokenizer_.finish();
    if (rest.ok()) {
      show(matcher_.push(*rest));
      show(matcher_.finish());
    } else {
      error_ = rest.error();
    }
  }
  if (error_) {
    channel_->push(failure_of(*error_));
    return;
  }
  if (!logprobs_.empty()) {
    channel_->push(TextDelta{Channel::kContent, "", std::exchange(logprobs_, {})});
  }
  const auto& usage = result->usage;
  const bool full = result->finish_reason == engine::FinishReason::kLength && !matcher_.stopped();
  channel_->push(Finished{full ? FinishReason::kLength : FinishReason::kStop,
                          {usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, 0}});
}

}  // namespace sluice::chat
