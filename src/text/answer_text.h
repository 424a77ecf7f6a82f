// From drawn tokens to the text of an answer: detokenization and stop strings together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace sluice::text {

// The text does not depend on how it is asked for. For one thread at a time.
class AnswerText {
 public:
  // prompt: the tokens before the answer. No stop string ends the text before its token number
  // min_tokens. The tokenizer must outlive it. kInvalidArgument for an empty stop string.
  static Result<AnswerText> create(const Tokenizer& tokenizer,
                                   std::span<const int32_t> prompt,
                                   std::vector<std::string> stops,
                                   int min_tokens);

  // The text that the next token completes and that belongs to no stop string: whole UTF-8
  // characters, often empty. Errors: those of the detokenizer.
  Result<std::string> push(int32_t token);
  // What was held back, when the answer ends; empty once stopped.
  Result<std::string> finish();

  // A stop string has ended the text: index in create()'s list.
  std::optional<size_t> matched() const { return matcher_.matched(); }
  bool stopped() const { return matcher_.stopped(); }

 private:
  AnswerText(DetokenizerStream detokenizer, StopMatcher matcher, int min_tokens)
      : detokenizer_(std::move(detokenizer)),
        matcher_(std::move(matcher)),
        min_tokens_(min_tokens) {}

  DetokenizerStream detokenizer_;
  StopMatcher matcher_;
  int min_tokens_;
  int count_ = 0;  // tokens so far
};

}  // namespace sluice::text
