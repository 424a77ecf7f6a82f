#include "engine/sampling_defaults.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

using nlohmann::json;

TEST(SamplingDefaults, ReadGenerationConfig) {
  const auto d = sampling_defaults(json::parse(R"({"temperature": 0.6, "top_k": 20, "top_p": 0.95,
      "min_p": 0.1, "repetition_penalty": 1.1, "do_sample": true, "eos_token_id": [1, 2]})"));
  ASSERT_TRUE(d.ok());
  EXPECT_EQ(d->temperature, 0.6);
  EXPECT_EQ(d->top_k, 20);
  EXPECT_EQ(d->top_p, 0.95);
  EXPECT_EQ(d->min_p, 0.1);
  EXPECT_EQ(d->repetition_penalty, 1.1);
  EXPECT_FALSE(d->presence_penalty.has_value());
}

TEST(SamplingDefaults, DoSampleDecidesBetweenGreedyAndSampling) {
  EXPECT_EQ(
      sampling_defaults(json::parse(R"({"do_sample": false, "temperature": 0.6})"))->temperature,
      0.0);
  EXPECT_EQ(sampling_defaults(json::parse(R"({"do_sample": true})"))->temperature, 1.0);
  EXPECT_FALSE(sampling_defaults(json::object())->temperature.has_value());
  EXPECT_TRUE(sampling_defaults(json()).ok());
}

TEST(SamplingDefaults, WrongTypesAreNamed) {
  const auto d = sampling_defaults(json::parse(R"({"top_k": "many"})"));
  ASSERT_FALSE(d.ok());
  EXPECT_NE(d.error().message.find("top_k"), std::string::npos);
  EXPECT_NE(d.error().message.find("generation_config.json"), std::string::npos);
}

TEST(ResolveSampling, RequestThenDefaultThenNeutral) {
  SamplingChoices request, usual;
  request.top_p = 0.5;
  usual.top_p = 0.9;
  usual.temperature = 0.7;
  usual.top_k = 100000;
  request.seed = 7;
  const auto p = resolve_sampling(request, usual, 1000);
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->top_p, 0.5);
  EXPECT_EQ(p->temperature, 0.7);
  EXPECT_EQ(p->top_k, 1000);  // the file's value, cut to the vocabulary
  EXPECT_EQ(p->min_p, 0.0);
  EXPECT_EQ(p->seed, 7u);
}

TEST(ResolveSampling, GreedyWhereNobodySaysAnything) {
  EXPECT_EQ(resolve_sampling({}, {}, 10)->temperature, 0.0);
}

TEST(ResolveSampling, SeedsAreRandomUnlessGiven) {
  EXPECT_NE(resolve_sampling({}, {}, 10)->seed, resolve_sampling({}, {}, 10)->seed);
}

TEST(ResolveSampling, RequestsAreValidated) {
  SamplingChoices request;
  request.top_k = 11;
  EXPECT_FALSE(resolve_sampling(request, {}, 10).ok());
}

}  // namespace
}  // namespace sluice::engine
