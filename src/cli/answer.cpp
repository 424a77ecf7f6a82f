#include "cli/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/stop_matcher.h"

namespace sluice::cli {
namespace {

// Turns token events into the answer's text.
class TextStream {
 public:
  TextStream(text::DetokenizerStream detokenizer,
             text::StopMatcher matcher,
             int min_tokens,
             const std::function<void(std::string_view)>& on_text,
             Answer& answer)
      : detokenizer_(std::move(detokenizer)),
        matcher_(std::move(matcher)),
        min_tokens_(min_tokens),
        on_text_(on_text),
        answer_(answer) {}

  // False: a stop string ended the text, or an error did.
  bool add(const engine::TokenEvent& event) {
    answer_.tokens.push_back({event.token, event.logprob, {event.top.begin(), event.top.end()}});
    if (event.stop_token) return true;
    auto piece = detokenizer_.step(event.token);
    if (!piece.ok()) {
      status_ = piece.error();
      return false;
    }
    if (event.index + 1 < min_tokens_) {
      show(*piece);
      return true;
    }
    show(matcher_.push(*piece));
    return !matcher_.stopped();
  }

  // What was held back.
  Status finish() {
    SLUICE_TRY_STATUS(status_);
    if (!matcher_.stopped()) {
      SLUICE_TRY(const auto rest, detokenizer_.finish());
      show(matcher_.push(rest));
      show(matcher_.finish());
    }
    return {};
  }

  std::optional<size_t> matched() const { return matcher_.matched(); }

 private:
  void show(std::string_view piece) {
    if (piece.empty()) return;
    answer_.text += piece;
    if (on_text_) on_text_(piece);
  }

  text::DetokenizerStream detokenizer_;
  text::StopMatcher matcher_;
  const int min_tokens_;
  const std::function<void(std::string_view)>& on_text_;
  Answer& answer_;
  Status status_;
};

std::string speed(int tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f} tok/s", tokens / seconds) : "- tok/s";
}

}  // namespace

Result<Answer> generate_answer(const TextModel& model,
                               const engine::GenerateRequest& request,
                               const std::vector<std::string>& stop_strings,
                               const std::function<void(std::string_view)>& on_text,
                               const std::atomic<bool>* cancel) {
  SLUICE_TRY(auto detokenizer,
             text::DetokenizerStream::create(model.tokenizer(), true, request.prompt));
  SLUICE_TRY(auto matcher, text::StopMatcher::create(stop_strings));
  Answer answer;
  TextStream stream(
      std::move(detokenizer), std::move(matcher), request.min_tokens, on_text, answer);
  SLUICE_TRY(
      answer.result,
      model.engine().generate(
          request, [&](const engine::TokenEvent& event) { return stream.add(event); }, cancel));
  SLUICE_TRY_STATUS(stream.finish());
  if (stream.matched()) answer.stop_string = stop_strings[*stream.matched()];
  return answer;
}

std::string stats_line(const engine::GenerateResult& result) {
  const auto& usage = result.usage;
  const auto& timings = result.timings;
  // The first token comes out of the prefill's last pass.
  return fmt::format("prompt {} tokens ({} cached), {:.2f} s, {}; answer {} tokens, {:.2f} s, {}",
                     usage.prompt_tokens,
                     usage.cached_tokens,
                     timings.prefill_seconds,
                     speed(usage.prompt_tokens - usage.cached_tokens, timings.prefill_seconds),
                     usage.completion_tokens,
                     timings.decode_seconds,
                     speed(std::max(0, usage.completion_tokens - 1), timings.decode_seconds));
}

}  // namespace sluice::cli
