#include "sampling/penalties.h"

#include <algorithm>
#include <limits>

namespace sluice::sampling {
namespace {

bool any_active(const SamplingParams& p) {
  return p.penalty_window != 0 &&
         (p.repetition_penalty != 1.0 || p.presence_penalty != 0.0 || p.frequency_penalty != 0.0);
}

std::span<const int32_t> last(std::span<const int32_t> tokens, size_t count) {
  return tokens.last(std::min(tokens.size(), count));
}

}  // namespace

Status Penalties::apply(std::span<float> logits,
                        const TokenHistory& history,
                        const SamplingParams& params) {
  if (!any_active(params)) return {};
  const size_t window =
      params.penalty_window < 0 ? history.size() : static_cast<size_t>(params.penalty_window);
  const auto output = last(history.output, window);
  const auto prompt = last(history.prompt, window - output.size());
  for (auto part : {prompt, output}) {
    for (int32_t id : part) {
      if (id < 0 || static_cast<size_t>(id) >= logits.size()) {
        return make_error(ErrorCode::kInvalidArgument,
                          "token id {} among the previous tokens; ids are in [0, {}]",
                          id,
                          logits.size() - 1);
      }
    }
  }

  counts_.resize(std::max(counts_.size(), logits.size()));
  auto see = [&](int32_t id) -> Counts& {
    auto& counts = counts_[id];
    if (!counts.seen) touched_.push_back(id);
    counts.seen = true;
    return counts;
  };
  for (int32_t id : prompt) see(id);
  for (int32_t id : output) ++see(id).outputs;

  const auto repetition = static_cast<float>(params.repetition_penalty);
  const auto presence = static_cast<float>(params.presence_penalty);
  const auto frequency = static_cast<float>(params.frequency_penalty);
  for (int32_t id : touched_) {
    float x = logits[id];
    if (x == -std::numeric_limits<float>::infinity()) {
      counts_[id] = {};
      continue;
    }
    x = x > 0.0f ? x / repetition : x * repetition;
    if (counts_[id].outputs > 0) {
      x -= frequency * static_cast<float>(counts_[id].outputs);
      x -= presence;
    }
    // A finite logit stays finite, however large it was.
    constexpr float kLargest = std::numeric_limits<float>::max();
    logits[id] = std::clamp(x, -kLargest, kLargest);
    counts_[id] = {};
  }
  touched_.clear();
  return {};
}

}  // namespace sluice::sampling
