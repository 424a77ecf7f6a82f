// What a request may say about sampling, and the check of it. No MLX in this folder: everything
// works on float32 logits in host memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/result.h"

namespace sluice::sampling {

// Which distribution reported log-probabilities belong to.
enum class LogprobsKind {
  kRaw,        // log-softmax of the model's float32 logits, before any processing
  kProcessed,  // of the distribution that the token was drawn from, see sampler.h
};

// Neutral by default: the model's own distribution. sampler.h says in which order they apply.
struct SamplingParams {
  double temperature = 1.0;  // [0, 100]; 0: the most likely token, the lowest id among equals
  int top_k = 0;             // 0: off; else keep the k most likely, the lower id among equals
  double top_p = 1.0;        // (0, 1]; 1: off
  double min_p = 0.0;        // [0, 1]; 0: off; keep p >= min_p * (largest p)

  // > 0; 1: off. Each distinct token of prompt and output once: positive logits are divided by it,
  // others multiplied (CTRL, Keskar et al. 2019; as transformers'
  // RepetitionPenaltyLogitsProcessor).
  double repetition_penalty = 1.0;
  // [-2, 2]; 0: off. Output tokens only, as in the OpenAI API and vLLM: presence is subtracted once
  // for each distinct token, frequency once for each occurrence.
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  // How many of the last tokens (prompt, then output) the three penalties look at; -1: all, 0:
  // none. mlx-lm has 20 here, llama.cpp 64; OpenAI, vLLM and transformers look at all.
  int penalty_window = -1;

  std::map<int32_t, double> logit_bias;  // token id -> [-100, 100], added to the logit

  uint64_t seed = 0;

  // How many of the most likely tokens to report, [0, vocabulary]; 0: the drawn one only; unset:
  // no log-probabilities at all.
  std::optional<int> logprobs;
  LogprobsKind logprobs_kind = LogprobsKind::kRaw;
};

// kInvalidArgument with the field's name, its value and what is allowed. vocab_size: width of the
// logits.
Status validate(const SamplingParams& params, int vocab_size);

}  // namespace sluice::sampling
