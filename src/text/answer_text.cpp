#include "text/answer_text.h"

#include <utility>

namespace sluice::text {

Result<AnswerText> AnswerText::create(const Tokenizer& tokenizer,
                                      std::span<const int32_t> prompt,
                                      std::vector<std::string> stops,
                                      int min_tokens) {
  SLUICE_TRY(auto detokenizer, DetokenizerStream::create(tokenizer, true, prompt));
  SLUICE_TRY(auto matcher, StopMatcher::create(std::move(stops)));
  return AnswerText(std::move(detokenizer), std::move(matcher), min_tokens);
}

Result<std::string> AnswerText::push(int32_t token) {
  SLUICE_TRY(auto piece, detokenizer_.step(token));
  if (++count_ < min_tokens_) return piece;
  return matcher_.push(piece);
}

Result<std::string> AnswerText::finish() {
  if (stopped()) return std::string();
  SLUICE_TRY(const auto rest, detokenizer_.finish());
  auto text = matcher_.push(rest);
  text += matcher_.finish();
  return text;
}

}  // namespace sluice::text
