// From the engine's tokens to ChatEvents: detokenization, stop strings, log-probabilities.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/event_channel.h"
#include "engine/types.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace sluice::chat {

// What the consumer of a request is told of an error of the engine.
Failure failure_of(const Error& error);

// One answer. For the engine's thread alone; the channel and the tokenizer must outlive it.
class AnswerEvents {
 public:
  // request: its prompt and min_tokens. Errors: those of the detokenizer and of the stop matcher.
  static Result<AnswerEvents> create(const text::Tokenizer& tokenizer,
                                     const engine::GenerateRequest& request,
                                     const std::vector<std::string>& stop,
                                     EventChannel& channel);

  // engine::TokenCallback: false when a stop string has ended the text, the consumer is gone, or
  // the token cannot be decoded.
  bool on_token(const engine::TokenEvent& event);

  // Sends what was held back and the final event.
  void finish(const Result<engine::GenerateResult>& result);

 private:
  AnswerEvents(const text::Tokenizer& tokenizer,
               text::DetokenizerStream detokenizer,
               text::StopMatcher matcher,
               int min_tokens,
               EventChannel& channel)
      : tokenizer_(&tokenizer),
        detokenizer_(std::move(detokenizer)),
        matcher_(std::move(matcher)),
        min_tokens_(min_tokens),
        channel_(&channel) {}
  TokenLogprob named(int32_t token, float logprob) const;
  bool show(std::string text);

  const text::Tokenizer* tokenizer_;
  text::DetokenizerStream detokenizer_;
  text::StopMatcher matcher_;
  int min_tokens_;
  EventChannel* channel_;
  std::vector<DrawnLogprob> logprobs_;  // of tokens whose text has not been sent
  std::optional<Error> error_;
};

}  // namespace sluice::chat
