// The checks of a request, on the thread of whoever submits it.
#include <algorithm>

#include "engine/row.h"
#include "engine/sampling_defaults.h"

namespace sluice::engine {
namespace {

// mlx-lm's prefill_step_size; larger passes gain nothing and hold more transient memory.
constexpr int kMaxPrefillChunk = 2048;
constexpr int kFastPrefillChunk = 512;

std::vector<int32_t> merged(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

Status check_ids(const char* what, const std::vector<int32_t>& ids, int vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} {} is {}; the model's token ids are in [0, {}]",
                        what,
                        i,
                        ids[i],
                        vocab_size - 1);
    }
  }
  return {};
}

// The most tokens that the output may have.
Result<int> resolve_max_tokens(const GenerateRequest& request, const ModelInfo& info) {
  const int64_t limit = std::min(info.context_tokens, info.cache_tokens);
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (request.max_tokens && *request.max_tokens < 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "max_tokens is {}; it must be at least 1",
                      *request.max_tokens);
  }
  const int64_t wanted = prompt_tokens + request.max_tokens.value_or(1);
  if (wanted > limit) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the prompt's {} tokens and max_tokens {} make {}, but at most {} fit (the "
                      "model's context is {}, the cache holds {}); shorten one{}",
                      prompt_tokens,
                      request.max_tokens.value_or(1),
                      wanted,
                      limit,
                      info.context_tokens,
                      info.cache_tokens,
                      info.cache_tokens < info.context_tokens ? " or enlarge the cache" : "");
  }
  return request.max_tokens.value_or(static_cast<int>(limit - prompt_tokens));
}

}  // namespace

Result<RowPlan> make_plan(const GenerateRequest& request, const ModelInfo& info, Mode mode) {
  if (request.prompt.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the prompt is empty; give at least one token to start from");
  }
  SLUICE_TRY_STATUS(check_ids("prompt token", request.prompt, info.vocab_size));
  SLUICE_TRY_STATUS(check_ids("stop_token_ids entry", request.stop_token_ids, info.vocab_size));
  RowPlan plan;
  SLUICE_TRY(plan.sampling,
             resolve_sampling(request.sampling, info.sampling_defaults, info.vocab_size));
  SLUICE_TRY(plan.max_tokens, resolve_max_tokens(request, info));
  if (request.min_tokens < 0 || request.min_tokens > plan.max_tokens) {
    return make_error(ErrorCode::kInvalidArgument,
                      "min_tokens is {}; it must be in [0, {}], the largest number of tokens here",
                      request.min_tokens,
                      plan.max_tokens);
  }
  plan.prefill_chunk = request.prefill_chunk.value_or(mode == Mode::kReference ? kMaxPrefillChunk
                                                                               : kFastPrefillChunk);
  if (plan.prefill_chunk < 1 || plan.prefill_chunk > kMaxPrefillChunk) {
    return make_error(ErrorCode::kInvalidArgument,
                      "prefill_chunk is {}; it must be in [1, {}]",
                      plan.prefill_chunk,
                      kMaxPrefillChunk);
  }
  plan.prompt_tokens = static_cast<int>(request.prompt.size());
  plan.min_tokens = request.min_tokens;
  plan.banned_ids = merged(info.eos_token_ids, request.stop_token_ids);
  plan.stop_ids = request.ignore_eos ? request.stop_token_ids : plan.banned_ids;
  plan.reuse_prefix = request.reuse_prefix;
  plan.prompt_index = request.prompt_index;
  plan.choice_index = request.choice_index;
  return plan;
}

}  // namespace sluice::engine
