// From the engine's tokens to ChatEvents: text, its parts, log-probabilities.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/event_channel.h"
#include "engine/types.h"
#include "text/answer_parser.h"
#include "text/answer_text.h"
#include "text/tokenizer.h"

namespace sluice::chat {

// What the consumer of a request is told of an error of the engine.
Failure failure_of(const Error& error);

// One answer. Stop strings act on what the model writes, markers included; the parser sees the
// rest. For the engine's thread alone; the channel and the tokenizer must outlive it.
class AnswerEvents {
 public:
  AnswerEvents(const text::Tokenizer& tokenizer,
               text::AnswerText text,
               std::unique_ptr<text::AnswerParser> parser,
               EventChannel& channel)
      : tokenizer_(&tokenizer),
        text_(std::move(text)),
        parser_(std::move(parser)),
        channel_(&channel) {}

  // engine::TokenCallback: false when a stop string has ended the text, the consumer is gone, or
  // the token cannot be decoded.
  bool on_token(const engine::TokenEvent& event);

  // Sends what was held back and the final event.
  void finish(const Result<engine::GenerateResult>& result);

 private:
  TokenLogprob named(int32_t token, float logprob) const;
  bool push(std::string_view text);
  bool send(std::vector<text::AnswerPart> parts);

  const text::Tokenizer* tokenizer_;
  text::AnswerText text_;
  std::unique_ptr<text::AnswerParser> parser_;
  EventChannel* channel_;
  std::vector<DrawnLogprob> logprobs_;  // of tokens whose text has not been sent
  int reasoning_tokens_ = 0;
  bool called_tools_ = false;
  std::optional<Error> error_;
};

}  // namespace sluice::chat
