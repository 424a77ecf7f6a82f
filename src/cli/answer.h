// One answer: generation, detokenization and stop strings together, streamed as text.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/text_model.h"

namespace sluice::cli {

struct TokenRecord {
  int32_t token = 0;
  std::optional<float> logprob;
  std::vector<sampling::TokenLogprob> top;
};

struct Answer {
  std::string text;  // without what ended it; everything on_text got
  std::optional<std::string> stop_string;
  std::vector<TokenRecord> tokens;
  engine::GenerateResult result;
};

// on_text gets whole UTF-8 characters as they come, on the engine thread; it may be empty. No stop
// string ends the text before request.min_tokens. cancel: see Engine::generate.
Result<Answer> generate_answer(const TextModel& model,
                               const engine::GenerateRequest& request,
                               const std::vector<std::string>& stop_strings,
                               const std::function<void(std::string_view)>& on_text,
                               const std::atomic<bool>* cancel = nullptr);

// "prompt 31 tokens (12 cached), 0.10 s, 190.0 tok/s; answer 8 tokens, 0.07 s, 112.0 tok/s".
std::string stats_line(const engine::GenerateResult& result);

}  // namespace sluice::cli
