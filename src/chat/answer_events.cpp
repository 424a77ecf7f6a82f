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

TokenLogprob AnswerEvents::named(int32_t token, float logprob) const {
  auto bytes = tokenizer_->token_bytes(token);
  if (!bytes) bytes = tokenizer_->id_to_token(token);
  return {bytes.value_or(""), logprob};
}

bool AnswerEvents::send(std::vector<text::AnswerPart> parts) {
  for (auto& part : parts) {
    ChatEvent event;
    if (auto* text = std::get_if<text::TextPart>(&part)) {
      event = TextDelta{text->reasoning ? Channel::kReasoning : Channel::kContent,
                        std::move(text->text),
                        std::exchange(logprobs_, {})};
    } else {
      auto& call = std::get<text::ToolCallPart>(part);
      called_tools_ = true;
      event = ToolCallDelta{
          call.index, std::move(call.id), std::move(call.name), std::move(call.arguments)};
    }
    if (!channel_->push(std::move(event))) return false;
  }
  return true;
}

bool AnswerEvents::push(std::string_view text) {
  std::vector<text::AnswerPart> parts;
  parser_->push(text, parts);
  return send(std::move(parts));
}

bool AnswerEvents::on_token(const engine::TokenEvent& event) {
  if (event.stop_token) return true;
  if (event.logprob) {
    DrawnLogprob drawn{named(event.token, *event.logprob), {}};
    for (const auto& [token, logprob] : event.top) drawn.top.push_back(named(token, logprob));
    logprobs_.push_back(std::move(drawn));
  }
  auto piece = text_.push(event.token);
  if (!piece.ok()) {
    error_ = piece.error();
    return false;
  }
  // The tokens of the markers count as thoughts too.
  const bool reasoning_before = parser_->in_reasoning();
  const bool sent = push(*piece);
  if (reasoning_before || parser_->in_reasoning()) ++reasoning_tokens_;
  return sent && !text_.stopped();
}

void AnswerEvents::finish(const Result<engine::GenerateResult>& result) {
  if (!result.ok()) error_ = result.error();
  if (!error_) {
    auto rest = text_.finish();
    if (rest.ok()) {
      push(*rest);
      std::vector<text::AnswerPart> parts;
      parser_->finish(parts);
      send(std::move(parts));
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
  auto reason = called_tools_ ? FinishReason::kToolCalls : FinishReason::kStop;
  if (result->finish_reason == engine::FinishReason::kLength && !text_.stopped()) {
    reason = FinishReason::kLength;
  }
  channel_->push(Finished{
      reason,
      {usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, reasoning_tokens_}});
}

}  // namespace sluice::chat
