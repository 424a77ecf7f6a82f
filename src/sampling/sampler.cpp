#include "sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sampling/gumbel.h"
#include "sampling/simd_clones.h"
#include "sampling/softmax_mass.h"

namespace sluice::sampling {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

// NaN or +inf.
bool is_broken(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7FFFFFFFu) >= 0x7F800000u && bits != 0xFF800000u;
}

int32_t first_index_of(std::span<const float> x, float value) {
  return static_cast<int32_t>(std::find(x.begin(), x.end(), value) - x.begin());
}

SLUICE_SIMD_CLONES void subtract_and_divide(std::span<float> x, float largest, float temperature) {
  for (auto& value : x) value = (value - largest) / temperature;
}

void apply_mask(std::span<float> x, std::span<const uint32_t> allowed) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(allowed[i / 32] >> (i % 32) & 1u)) x[i] = kForbidden;
  }
}

}  // namespace

Status Sampler::load(std::span<const float> logits) {
  if (logits.empty() || logits.size() > kMaxVocab) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} logits; a vocabulary has 1 to {} entries",
                      logits.size(),
                      kMaxVocab);
  }
  work_.assign((logits.size() + kChunk - 1) / kChunk * kChunk, kForbidden);
  uint32_t broken = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    work_[i] = logits[i];
    broken |= is_broken(logits[i]);
  }
  if (!broken) return {};
  const auto at = std::find_if(logits.begin(), logits.end(), is_broken) - logits.begin();
  return make_error(ErrorCode::kInternal,
                    "the model's logit of token {} is {}: its weights or activations overflowed",
                    at,
                    logits[at]);
}

Status Sampler::process(const SamplingParams& params, const DrawInputs& inputs) {
  const size_t vocab = inputs.logits.size();
  const std::span<float> logits(work_.data(), vocab);
  SLUICE_TRY_STATUS(penalties_.apply(logits, inputs.history, params));
  for (const auto& [token, bias] : params.logit_bias) logits[token] += static_cast<float>(bias);
  if (!inputs.allowed.empty()) {
    if (inputs.allowed.size() != (vocab + 31) / 32) {
      return make_error(ErrorCode::kInvalidArgument,
                        "the token mask has {} words; {} tokens need {}",
                        inputs.allowed.size(),
                        vocab,
                        (vocab + 31) / 32);
    }
    apply_mask(logits, inputs.allowed);
  }
  for (int32_t token : inputs.banned) {
    // An EOS id beyond the logits cannot be drawn anyway.
    if (token >= 0 && static_cast<size_t>(token) < vocab) logits[token] = kForbidden;
  }
  return {};
}

Status Sampler::scale(float temperature) {
  const float largest = fill_chunk_max(work_, chunk_max_);
  if (largest == kForbidden) {
    return make_error(ErrorCode::kInvalidArgument,
                      "no token can be drawn: the token mask, the ban of end tokens and the "
                      "model's own -inf logits leave none");
  }
  // The bounds take the same rounded steps as the entries, so they stay exact.
  subtract_and_divide(work_, largest, temperature);
  subtract_and_divide(chunk_max_, largest, temperature);
  return {};
}

void Sampler::apply(const Cut& cut) {
  for (size_t c = 0; c < chunk_max_.size(); ++c) {
    float* chunk = work_.data() + c * kChunk;
    if (chunk_max_[c] < cut.value) {
      std::fill(chunk, chunk + kChunk, kForbidden);
      chunk_max_[c] = kForbidden;
      continue;
    }
    for (int i = 0; i < kChunk; ++i) {
      if (!cut.keeps(chunk[i], static_cast<int32_t>(c) * kChunk + i)) chunk[i] = kForbidden;
    }
  }
}

void Sampler::report(int count, Draw& draw) {
  const double log_sum = log_of_mass(total_mass(work_));
  auto logprob = [&](int32_t token) {
    return static_cast<float>(static_cast<double>(work_[token]) - log_sum);
  };
  draw.logprob = logprob(draw.token);
  for (int32_t token : filters_.top(weights(), count)) draw.top.push_back({token, logprob(token)});
}

Result<Draw> Sampler::draw(const SamplingParams& params, const DrawInputs& inputs) {
  SLUICE_TRY_STATUS(load(inputs.logits));
  const bool want_raw = params.logprobs && params.logprobs_kind == LogprobsKind::kRaw;
  if (want_raw) raw_ = work_;
  SLUICE_TRY_STATUS(process(params, inputs));

  const bool greedy = params.temperature == 0.0;
  SLUICE_TRY_STATUS(scale(greedy ? 1.0f : static_cast<float>(params.temperature)));
  Draw draw;
  if (greedy) {
    draw.token = first_index_of(work_, 0.0f);
  } else {
    const Cut cut = filters_.find_cut(weights(), params);
    if (cut.value > kForbidden) apply(cut);
    const Choice choice{params.seed,
                        inputs.prompt_index,
                        inputs.choice_index,
                        static_cast<uint32_t>(inputs.history.size())};
    draw.token = draw_gumbel_max(weights(), choice);
  }

  if (params.logprobs) {
    if (want_raw) {
      work_.swap(raw_);
      SLUICE_TRY_STATUS(scale(1.0f));
    }
    report(*params.logprobs, draw);
  }
  return draw;
}

}  // namespace sluice::sampling
