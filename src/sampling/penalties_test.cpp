#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice::sampling {
namespace {

using Tokens = std::vector<int32_t>;

std::vector<float> penalized(std::vector<float> logits,
                             const Tokens& prompt,
                             const Tokens& output,
                             const SamplingParams& params) {
  Penalties penalties;
  penalties.apply(logits, {prompt, output}, params).or_throw();
  return logits;
}

TEST(Penalties, RepetitionDividesPositiveAndMultipliesOtherLogitsOnce) {
  SamplingParams p;
  p.repetition_penalty = 2;
  // 0 and 1 stand twice and in both parts; 3 is untouched.
  EXPECT_EQ(penalized({4, -4, 0, 4}, {0, 0, 1}, {1, 0, 2}, p), (std::vector<float>{2, -8, 0, 4}));
}

TEST(Penalties, PresenceAndFrequencyCountOutputOnly) {
  SamplingParams p;
  p.presence_penalty = 0.5;
  p.frequency_penalty = 0.25;
  EXPECT_EQ(penalized({1, 1, 1, 1}, {0, 0, 3}, {1, 2, 2, 2}, p),
            (std::vector<float>{1, 0.25f, -0.25f, 1}));
}

TEST(Penalties, RepetitionComesBeforeTheSubtractions) {
  SamplingParams p;
  p.repetition_penalty = 2;
  p.presence_penalty = 1;
  EXPECT_EQ(penalized({4}, {}, {0}, p), (std::vector<float>{1}));
}

TEST(Penalties, WindowReachesFromOutputIntoThePrompt) {
  SamplingParams p;
  p.repetition_penalty = 2;
  p.frequency_penalty = 1;
  const std::vector<float> logits = {8, 8, 8, 8};
  const Tokens prompt = {0, 1}, output = {2, 3, 3};
  p.penalty_window = 4;
  EXPECT_EQ(penalized(logits, prompt, output, p), (std::vector<float>{8, 4, 3, 2}));
  p.penalty_window = 2;
  EXPECT_EQ(penalized(logits, prompt, output, p), (std::vector<float>{8, 8, 8, 2}));
  p.penalty_window = 1;
  EXPECT_EQ(penalized(logits, prompt, output, p), (std::vector<float>{8, 8, 8, 3}));
  p.penalty_window = 0;
  EXPECT_EQ(penalized(logits, prompt, output, p), logits);
  p.penalty_window = 1000;
  EXPECT_EQ(penalized(logits, prompt, output, p), (std::vector<float>{4, 4, 3, 2}));
}

TEST(Penalties, MovingTheBoundaryMattersAndRepeatedCallsDoNot) {
  SamplingParams p;
  p.presence_penalty = 1;
  Penalties penalties;
  for (int i = 0; i < 3; ++i) {
    std::vector<float> logits = {1, 1};
    const Tokens prompt = {0}, output = {1};
    ASSERT_TRUE(penalties.apply(logits, {prompt, output}, p).ok());
    EXPECT_EQ(logits, (std::vector<float>{1, 0}));
  }
}

TEST(Penalties, ImpossibleAndHugeLogitsStayWhatTheyAre) {
  SamplingParams p;
  p.repetition_penalty = 0.01;
  p.presence_penalty = -2;
  const float inf = std::numeric_limits<float>::infinity();
  const float huge = std::numeric_limits<float>::max();
  EXPECT_EQ(penalized({-inf, huge}, {}, {0, 1}, p), (std::vector<float>{-inf, huge}));
}

TEST(Penalties, ForeignTokenIdsAreAnError) {
  SamplingParams p;
  p.presence_penalty = 1;
  Penalties penalties;
  std::vector<float> logits = {1, 1};
  for (int32_t id : {-1, 2}) {
    const Tokens output = {id};
    const auto status = penalties.apply(logits, {{}, output}, p);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(logits, (std::vector<float>{1, 1}));
  }
}

}  // namespace
}  // namespace sluice::sampling
