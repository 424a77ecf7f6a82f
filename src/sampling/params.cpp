#include "sampling/params.h"

#include <cmath>

namespace sluice::sampling {
namespace {

Status require_range(const char* name, double value, double low, double high) {
  // Written so that NaN fails.
  if (value >= low && value <= high) return {};
  return make_error(
      ErrorCode::kInvalidArgument, "{} is {}; it must be in [{}, {}]", name, value, low, high);
}

}  // namespace

Status validate(const SamplingParams& p, int vocab_size) {
  SLUICE_TRY_STATUS(require_range("temperature", p.temperature, 0, 100));
  // A positive temperature that float32 rounds to 0 would divide by it.
  if (p.temperature > 0 && p.temperature < 1e-6) {
    return make_error(ErrorCode::kInvalidArgument,
                      "temperature is {}; it must be 0 (greedy) or at least 1e-06",
                      p.temperature);
  }
  if (p.top_k < 0 || p.top_k > vocab_size) {
    return make_error(ErrorCode::kInvalidArgument,
                      "top_k is {}; it must be 0 (off) or in [1, {}], the vocabulary's size",
                      p.top_k,
                      vocab_size);
  }
  if (!(p.top_p > 0 && p.top_p <= 1)) {
    return make_error(
        ErrorCode::kInvalidArgument, "top_p is {}; it must be in (0, 1], 1 being off", p.top_p);
  }
  SLUICE_TRY_STATUS(require_range("min_p", p.min_p, 0, 1));
  if (!(p.repetition_penalty > 0 && p.repetition_penalty <= 100)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "repetition_penalty is {}; it must be in (0, 100], 1 being off",
                      p.repetition_penalty);
  }
  SLUICE_TRY_STATUS(require_range("presence_penalty", p.presence_penalty, -2, 2));
  SLUICE_TRY_STATUS(require_range("frequency_penalty", p.frequency_penalty, -2, 2));
  if (p.penalty_window < -1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "penalty_window is {}; it must be -1 (all tokens), 0 (none) or a number of "
                      "tokens",
                      p.penalty_window);
  }
  for (const auto& [token, bias] : p.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument,
                        "logit_bias has token id {}; ids are in [0, {}]",
                        token,
                        vocab_size - 1);
    }
    if (!(bias >= -100 && bias <= 100)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "logit_bias of token {} is {}; it must be in [-100, 100]",
                        token,
                        bias);
    }
  }
  if (p.logprobs && (*p.logprobs < 0 || *p.logprobs > vocab_size)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "logprobs is {}; it must be in [0, {}], the vocabulary's size",
                      *p.logprobs,
                      vocab_size);
  }
  return {};
}

}  // namespace sluice::sampling
