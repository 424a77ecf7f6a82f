#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "sampling/gumbel.h"
#include "sampling/softmax_mass.h"

namespace sluice::sampling {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
using Tokens = std::vector<int32_t>;

std::vector<float> random_logits(int size, float spread, int seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(size);
  for (auto& x : logits) x = normal(random);
  return logits;
}

SamplingParams greedy() {
  SamplingParams p;
  p.temperature = 0;
  return p;
}

int32_t draw_token(const std::vector<float>& logits, const SamplingParams& p) {
  return Sampler().draw(p, {.logits = logits}).value().token;
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdAmongEquals) {
  EXPECT_EQ(draw_token({1, 3, 2, 3}, greedy()), 1);
  EXPECT_EQ(draw_token({-kInf, -5, -5}, greedy()), 1);
  std::vector<float> last(1000, 0.0f);
  last.back() = 1e-30f;
  EXPECT_EQ(draw_token(last, greedy()), 999);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  // Chi-square over 1e5 draws at several temperatures and filters; the noise is fixed by the
  // indices, so this cannot fail by chance.
  constexpr int kDraws = 100000, kVocab = 40;
  const auto logits = random_logits(kVocab, 1.5f, 4);
  struct Case {
    double temperature;
    int top_k;
  };
  Sampler sampler;
  Tokens history;
  for (const Case c : {Case{1.0, 0}, Case{0.7, 0}, Case{1.5, 12}}) {
    SamplingParams p;
    p.temperature = c.temperature;
    p.top_k = c.top_k;
    p.seed = 99;
    std::vector<double> expected(kVocab);
    auto sorted = logits;
    std::sort(sorted.rbegin(), sorted.rend());
    const float lowest = c.top_k ? sorted[c.top_k - 1] : sorted.back();
    double sum = 0;
    for (int i = 0; i < kVocab; ++i) {
      if (logits[i] >= lowest) expected[i] = std::exp(logits[i] / c.temperature);
      sum += expected[i];
    }
    std::vector<int> seen(kVocab);
    for (uint32_t i = 0; i < kDraws; ++i) {
      ++seen[sampler.draw(p, {.logits = logits, .prompt_index = i / 300, .choice_index = i % 300})
                 .value()
                 .token];
    }
    double chi_square = 0;
    int cells = 0;
    for (int i = 0; i < kVocab; ++i) {
      const double mean = kDraws * expected[i] / sum;
      if (expected[i] == 0) {
        EXPECT_EQ(seen[i], 0);
      }
      if (mean < 5) continue;
      chi_square += (seen[i] - mean) * (seen[i] - mean) / mean;
      ++cells;
    }
    // Mean cells - 1 and variance 2 (cells - 1): four standard deviations.
    EXPECT_LT(chi_square, cells - 1 + 4 * std::sqrt(2.0 * (cells - 1))) << c.temperature;
    EXPECT_GT(cells, 10);
  }
}

// The definition, entry by entry, without chunks and bounds.
int32_t gumbel_max_by_definition(const std::vector<float>& y, const Choice& choice) {
  int32_t best = -1;
  double best_score = -kInf;
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] == -kInf) continue;
    const double score = static_cast<double>(y[i]) + gumbel_noise(choice, static_cast<uint32_t>(i));
    if (score > best_score) {
      best_score = score;
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

TEST(Gumbel, PruningNeverChangesTheWinner) {
  for (float spread : {0.0f, 0.01f, 1.0f, 5.0f, 30.0f}) {
    auto y = random_logits(64 * 40, spread, 5);
    const float largest = *std::max_element(y.begin(), y.end());
    for (auto& x : y) x -= largest;
    for (size_t i = 0; i < y.size(); i += 3) y[i] = -kInf;
    y[1] = 0;
    std::vector<float> chunk_max;
    fill_chunk_max(y, chunk_max);
    for (uint32_t token = 0; token < 200; ++token) {
      const Choice choice{7, 1, 2, token};
      ASSERT_EQ(draw_gumbel_max({y, chunk_max}, choice), gumbel_max_by_definition(y, choice))
          << spread;
    }
  }
}

TEST(Gumbel, NoiseHasTheGumbelMeanAndEveryIndexMatters) {
  double sum = 0, squares = 0;
  constexpr int kCount = 200000;
  for (uint32_t i = 0; i < kCount; ++i) {
    const double g = gumbel_noise({1, 2, 3, 4}, i);
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.5772, 0.01);                           // Euler's constant
  EXPECT_NEAR(squares / kCount - mean * mean, 1.645, 0.03);  // pi^2 / 6
  const Choice base{1, 2, 3, 4};
  const double g = gumbel_noise(base, 9);
  EXPECT_EQ(g, gumbel_noise(base, 9));
  EXPECT_NE(g, gumbel_noise({uint64_t{1} << 32 | 1, 2, 3, 4}, 9));
  EXPECT_NE(g, gumbel_noise({2, 2, 3, 4}, 9));
  EXPECT_NE(g, gumbel_noise({1, 0, 3, 4}, 9));
  EXPECT_NE(g, gumbel_noise({1, 2, 0, 4}, 9));
  EXPECT_NE(g, gumbel_noise({1, 2, 3, 0}, 9));
  EXPECT_NE(g, gumbel_noise(base, 10));
}

TEST(Sampler, TokenIndexIsTheHistorysLengthWhereverTheBoundaryLies) {
  const auto logits = random_logits(500, 0.1f, 6);
  const SamplingParams p;
  Sampler sampler;
  const Tokens tokens = {1, 2, 3, 4, 5};
  const std::span<const int32_t> all = tokens;
  std::vector<int32_t> drawn;
  for (size_t cut = 0; cut <= tokens.size(); ++cut) {
    drawn.push_back(
        sampler.draw(p, {.logits = logits, .history = {all.first(cut), all.subspan(cut)}})
            .value()
            .token);
  }
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), drawn[0]), 6);
}

TEST(Sampler, FilteredEntriesDoNotMoveTheOthersNoise) {
  // A token that wins among all wins among any subset that holds it.
  const auto logits = random_logits(2000, 2.0f, 7);
  Sampler sampler;
  int inside = 0;
  for (uint32_t i = 0; i < 300; ++i) {
    SamplingParams p;
    const DrawInputs inputs{.logits = logits, .choice_index = i};
    const int32_t free = sampler.draw(p, inputs).value().token;
    p.top_k = 200;
    p.logprobs = 200;
    p.logprobs_kind = LogprobsKind::kProcessed;
    const auto filtered = sampler.draw(p, inputs).value();
    const bool kept = std::any_of(
        filtered.top.begin(), filtered.top.end(), [&](const auto& t) { return t.token == free; });
    if (kept) {
      EXPECT_EQ(filtered.token, free);
    }
    inside += kept;
  }
  EXPECT_GT(inside, 100);
}

TEST(Sampler, OnlyOnePossibleTokenIsDrawnAtAnyTemperature) {
  std::vector<float> logits(100, -kInf);
  logits[71] = -1e30f;
  for (double temperature : {0.0, 1e-6, 1.0, 100.0}) {
    SamplingParams p;
    p.temperature = temperature;
    p.top_p = 0.5;
    p.min_p = 0.2;
    EXPECT_EQ(draw_token(logits, p), 71);
  }
}

TEST(Sampler, ExtremeLogitsAreHandled) {
  const float huge = std::numeric_limits<float>::max();
  SamplingParams p;
  p.logprobs = 2;
  p.repetition_penalty = 0.01;
  const Tokens output = {0, 1};
  const std::vector<float> logits = {-huge, huge, 0};
  const auto draw = Sampler().draw(p, {.logits = logits, .history = {{}, output}}).value();
  EXPECT_EQ(draw.token, 1);
  EXPECT_EQ(*draw.logprob, 0.0f);
}

TEST(Sampler, MaskAndBansForbid) {
  const std::vector<float> logits = {9, 8, 7, 6};
  const std::vector<uint32_t> all_but_first = {0b1110}, second = {0b0010}, none = {0};
  const Tokens ban = {1, 1000, -1};
  Sampler sampler;
  auto token = [&](std::span<const uint32_t> allowed, std::span<const int32_t> banned) {
    return sampler.draw(greedy(), {.logits = logits, .allowed = allowed, .banned = banned})
        .value()
        .token;
  };
  EXPECT_EQ(token({}, {}), 0);
  EXPECT_EQ(token(all_but_first, {}), 1);
  EXPECT_EQ(token(all_but_first, ban), 2);
  EXPECT_EQ(token(second, {}), 1);
  for (auto p : {greedy(), SamplingParams{}}) {
    auto left = sampler.draw(p, {.logits = logits, .allowed = none});
    ASSERT_FALSE(left.ok());
    EXPECT_EQ(left.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(sampler.draw(p, {.logits = logits, .allowed = second, .banned = ban}).ok());
  }
  const std::vector<uint32_t> two_words = {1, 1};
  EXPECT_FALSE(sampler.draw(greedy(), {.logits = logits, .allowed = two_words}).ok());
}

TEST(Sampler, BrokenLogitsAreTheModelsError) {
  for (float broken : {kInf, std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> logits = {1, broken, 2};
    auto draw = Sampler().draw({}, {.logits = logits});
    ASSERT_FALSE(draw.ok());
    EXPECT_EQ(draw.error().code, ErrorCode::kInternal);
    EXPECT_NE(draw.error().message.find("token 1"), std::string::npos);
  }
  EXPECT_FALSE(Sampler().draw({}, {}).ok());
}

TEST(Sampler, BiasIsAddedAfterPenalties) {
  SamplingParams p = greedy();
  p.logit_bias = {{2, 50}};
  EXPECT_EQ(draw_token({9, 8, 7}, p), 2);
  p.repetition_penalty = 100;
  const Tokens output = {2};
  const std::vector<float> logits = {9, 8, 7};
  EXPECT_EQ(Sampler().draw(p, {.logits = logits, .history = {{}, output}}).value().token, 2);
}

TEST(Sampler, RawLogprobsAreTheModelsOwn) {
  const std::vector<float> logits = {1, 2, 3, 2};
  SamplingParams p = greedy();
  p.logit_bias = {{0, 100}};
  p.logprobs = 3;
  const auto draw = Sampler().draw(p, {.logits = logits}).value();
  const double log_sum = std::log(std::exp(1.0) + 2 * std::exp(2.0) + std::exp(3.0));
  EXPECT_EQ(draw.token, 0);
  EXPECT_NEAR(*draw.logprob, 1 - log_sum, 1e-6);
  ASSERT_EQ(draw.top.size(), 3u);
  EXPECT_EQ(draw.top[0].token, 2);
  EXPECT_EQ(draw.top[1].token, 1);
  EXPECT_EQ(draw.top[2].token, 3);
  EXPECT_NEAR(draw.top[0].logprob, 3 - log_sum, 1e-6);
}

TEST(Sampler, ProcessedLogprobsAreOfTheFilteredDistribution) {
  const std::vector<float> logits = {1, 2, 3};
  SamplingParams p;
  p.temperature = 0.5;
  p.top_k = 2;
  p.logprobs = 3;
  p.logprobs_kind = LogprobsKind::kProcessed;
  const auto draw = Sampler().draw(p, {.logits = logits}).value();
  ASSERT_EQ(draw.top.size(), 2u);
  const double log_sum = std::log(std::exp(4.0) + std::exp(6.0));
  EXPECT_NEAR(draw.top[0].logprob, 6 - log_sum, 1e-6);
  EXPECT_NEAR(draw.top[1].logprob, 4 - log_sum, 1e-6);
  EXPECT_EQ(*draw.logprob, draw.top[draw.token == 2 ? 0 : 1].logprob);
}

TEST(Sampler, LogprobsAreOnlyMadeOnRequestAndNeverChangeTheToken) {
  const auto logits = random_logits(3000, 1.0f, 8);
  Sampler sampler;
  for (uint32_t i = 0; i < 50; ++i) {
    SamplingParams p;
    const DrawInputs inputs{.logits = logits, .choice_index = i};
    const auto plain = sampler.draw(p, inputs).value();
    EXPECT_FALSE(plain.logprob.has_value());
    for (auto kind : {LogprobsKind::kRaw, LogprobsKind::kProcessed}) {
      p.logprobs = 0;
      p.logprobs_kind = kind;
      const auto with = sampler.draw(p, inputs).value();
      EXPECT_EQ(with.token, plain.token);
      EXPECT_TRUE(with.logprob.has_value());
      EXPECT_TRUE(with.top.empty());
    }
  }
}

}  // namespace
}  // namespace sluice::sampling
