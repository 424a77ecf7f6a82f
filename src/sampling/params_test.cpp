#include "sampling/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace sluice::sampling {
namespace {

constexpr int kVocab = 100;

struct BadCase {
  const char* field;
  std::function<void(SamplingParams&)> spoil;
};

TEST(SamplingParams, NeutralDefaultsAreValid) {
  EXPECT_TRUE(validate({}, kVocab).ok());
}

TEST(SamplingParams, EveryBadValueIsNamed) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const BadCase cases[] = {
      {"temperature", [&](auto& p) { p.temperature = nan; }},
      {"temperature", [&](auto& p) { p.temperature = -0.1; }},
      {"temperature", [&](auto& p) { p.temperature = inf; }},
      {"temperature", [&](auto& p) { p.temperature = 1e-50; }},
      {"top_k", [&](auto& p) { p.top_k = -1; }},
      {"top_k", [&](auto& p) { p.top_k = kVocab + 1; }},
      {"top_p", [&](auto& p) { p.top_p = 0; }},
      {"top_p", [&](auto& p) { p.top_p = 1.01; }},
      {"top_p", [&](auto& p) { p.top_p = nan; }},
      {"min_p", [&](auto& p) { p.min_p = -0.01; }},
      {"min_p", [&](auto& p) { p.min_p = 1.5; }},
      {"repetition_penalty", [&](auto& p) { p.repetition_penalty = 0; }},
      {"repetition_penalty", [&](auto& p) { p.repetition_penalty = nan; }},
      {"presence_penalty", [&](auto& p) { p.presence_penalty = 2.1; }},
      {"frequency_penalty", [&](auto& p) { p.frequency_penalty = -2.1; }},
      {"penalty_window", [&](auto& p) { p.penalty_window = -2; }},
      {"logit_bias", [&](auto& p) { p.logit_bias[kVocab] = 1; }},
      {"logit_bias", [&](auto& p) { p.logit_bias[-1] = 1; }},
      {"logit_bias", [&](auto& p) { p.logit_bias[3] = 101; }},
      {"logit_bias", [&](auto& p) { p.logit_bias[3] = nan; }},
      {"logprobs", [&](auto& p) { p.logprobs = -1; }},
      {"logprobs", [&](auto& p) { p.logprobs = kVocab + 1; }},
  };
  for (const auto& bad : cases) {
    SamplingParams params;
    bad.spoil(params);
    const auto status = validate(params, kVocab);
    ASSERT_FALSE(status.ok()) << bad.field;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(status.error().message.find(bad.field), 0u) << status.error().message;
  }
}

TEST(SamplingParams, BordersAreAllowed) {
  SamplingParams p;
  p.temperature = 0;
  p.top_k = kVocab;
  p.top_p = 1e-9;
  p.min_p = 1;
  p.presence_penalty = -2;
  p.frequency_penalty = 2;
  p.penalty_window = 0;
  p.logit_bias = {{0, -100}, {kVocab - 1, 100}};
  p.logprobs = kVocab;
  EXPECT_TRUE(validate(p, kVocab).ok());
}

}  // namespace
}  // namespace sluice::sampling
