#include "cli/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/answer_text.h"

namespace sluice::cli {
namespace {

std::string speed(int tokens, double seconds) {
  return seconds > 0 ? fmt::format("{:.1f} tok/s", tokens / seconds) : "- tok/s";
}

}  // namespace

Result<Answer> generate_answer(const TextModel& model,
                               const engine::GenerateRequest& request,
                               const std::vector<std::string>& stop_strings,
                               const std::function<void(std::string_view)>& on_text,
                               const std::atomic<bool>* cancel) {
  SLUICE_TRY(auto text,
             text::AnswerText::create(
                 model.tokenizer(), request.prompt, stop_strings, request.min_tokens));
  Answer answer;
  Status status;
  // False: a stop string ended the text, or an error did.
  const auto show = [&](const Result<std::string>& piece) {
    if (!piece.ok()) {
      status = piece.error();
      return false;
    }
    answer.text += *piece;
    if (on_text && !piece->empty()) on_text(*piece);
    return !text.stopped();
  };
  const auto on_token = [&](const engine::TokenEvent& event) {
    answer.tokens.push_back({event.token, event.logprob, {event.top.begin(), event.top.end()}});
    return event.stop_token || show(text.push(event.token));
  };
  SLUICE_TRY(answer.result, model.engine().generate(request, on_token, cancel));
  if (status.ok()) show(text.finish());
  SLUICE_TRY_STATUS(status);
  if (text.matched()) answer.stop_string = stop_strings[*text.matched()];
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
