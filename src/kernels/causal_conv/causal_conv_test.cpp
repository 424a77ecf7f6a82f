#include "kernels/causal_conv/causal_conv.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

std::vector<int32_t> range(int first, int count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

mx::array random_tail(int taps, int channels, uint32_t seed) {
  auto tail = to_array(normal_values(size_t(taps - 1) * channels, seed), {taps - 1, channels});
  tail.eval();
  return tail;
}

TEST(CausalConv, MatchesModelAndReference) {
  auto own = make_context();
  auto reference = make_reference_context();
  for (int taps : {2, 3, 4, 7}) {
    for (int channels : {1, 15, 16, 257, 600}) {
      for (int tokens : {1, 2, 3, 4, 29}) {
        const auto x = normal_values(size_t(tokens) * channels, 1);
        const auto w = normal_values(size_t(channels) * taps, 2, 0.5f);
        auto own_tail = random_tail(taps, channels, 3), other_tail = random_tail(taps, channels, 3);
        auto input = to_values(own_tail);
        input.insert(input.end(), x.begin(), x.end());
        auto call = [&](const Context& context, mx::array& tail) {
          const ConvWeight weight(context, to_array(w, {channels, taps}));
          return to_values(causal_conv(
              context, to_array(x, {tokens, channels}), weight, {{range(0, tokens), &tail}}));
        };
        const auto y = call(*own, own_tail);
        const auto composed = call(*reference, other_tail);
        for (int t = 0; t < tokens; ++t) {
          for (int c = 0; c < channels; ++c) {
            double sum = 0, size = 0;
            for (int j = 0; j < taps; ++j) {
              const double product = double(w[c * taps + j]) * input[(t + j) * channels + c];
              sum += product, size += std::abs(product);
            }
            const double expected = sum / (1 + std::exp(-sum));
            const double bound = (taps + 8) * kUnit * (size + std::abs(expected)) + 1e-30;
            ASSERT_NEAR(y[t * channels + c], expected, bound);
            ASSERT_NEAR(composed[t * channels + c], expected, 8 * bound);
          }
        }
        const std::vector<float> last(input.end() - (taps - 1) * channels, input.end());
        EXPECT_TRUE(same_bits(to_values(own_tail), last));
        EXPECT_TRUE(same_bits(to_values(other_tail), last));
      }
    }
  }
  EXPECT_EQ(own->kernel_runs(Op::kCausalConv), 100);
}

TEST(CausalConv, PadsReachNothingAndGiveZero) {
  constexpr int kChannels = 40, kTaps = 4, kTokens = 9;
  const std::vector<int32_t> listed = {0, 1, 4, 5, 6, 8};
  for (auto* make : {+[] { return make_context(); }, +[] { return make_reference_context(); }}) {
    auto context = make();
    const ConvWeight weight(*context, to_array(normal_values(160, 2), {kChannels, kTaps}));
    auto x = normal_values(kTokens * kChannels, 1);
    std::vector<float> compact;
    for (int t = 0; t < kTokens; ++t) {
      if (std::count(listed.begin(), listed.end(), t) > 0) {
        compact.insert(compact.end(), x.begin() + t * kChannels, x.begin() + (t + 1) * kChannels);
      } else {
        std::fill_n(x.begin() + t * kChannels, kChannels, t % 2 ? NAN : INFINITY);
      }
    }
    auto padded_tail = random_tail(kTaps, kChannels, 5), tail = random_tail(kTaps, kChannels, 5);
    const auto padded = to_values(
        causal_conv(*context, to_array(x, {kTokens, kChannels}), weight, {{listed, &padded_tail}}));
    const auto alone = to_values(
        causal_conv(*context, to_array(compact, {6, kChannels}), weight, {{range(0, 6), &tail}}));
    for (int t = 0, i = 0; t < kTokens; ++t) {
      const bool pad = i >= 6 || listed[i] != t;
      for (int c = 0; c < kChannels; ++c) {
        ASSERT_EQ(padded[t * kChannels + c], pad ? 0.0f : alone[i * kChannels + c]);
      }
      i += !pad;
    }
    EXPECT_TRUE(same_bits(to_values(padded_tail), to_values(tail)));
  }
}

TEST(CausalConv, TentativeRowsKeepTheirTailUntilItIsAdvanced) {
  constexpr int kChannels = 40, kTaps = 4;
  for (auto* make : {+[] { return make_context(); }, +[] { return make_reference_context(); }}) {
    auto context = make();
    const ConvWeight weight(*context, to_array(normal_values(160, 2), {kChannels, kTaps}));
    auto x = to_array(normal_values(6 * kChannels, 1), {6, kChannels});
    for (int keep = 0; keep <= 5; ++keep) {
      auto tail = random_tail(kTaps, kChannels, 5), settled = random_tail(kTaps, kChannels, 5);
      const auto before = to_values(tail);
      causal_conv(*context, x, weight, {{range(1, 5), &tail, false}}).eval();
      EXPECT_TRUE(same_bits(to_values(tail), before));
      const auto tokens = range(1, keep);
      mx::eval(causal_conv(*context, x, weight, {{tokens, &settled}}), settled);
      const auto advanced = advanced_conv_tail(tail, x, tokens);
      EXPECT_TRUE(same_bits(to_values(advanced), to_values(settled))) << keep;
      EXPECT_NE(advanced.data<float>(), tail.data<float>());
    }
  }
}

TEST(CausalConv, RejectsWrongInputs) {
  auto context = make_context();
  const ConvWeight weight(*context, mx::ones({8, 4}));
  auto tail = zero_conv_tail(4, 8, mx::float32);
  auto call = [&](const mx::array& x, std::vector<ConvRow> rows) {
    return thrown_message([&] { causal_conv(*context, x, weight, rows); });
  };
  EXPECT_THAT(call(mx::ones({2, 7}), {}), HasSubstr("x has shape [2, 7]"));
  EXPECT_THAT(call(mx::ones({2, 8}, mx::float16), {}), HasSubstr("must be float32"));
  EXPECT_THAT(call(mx::ones({2, 8}), {{{0, 2}, &tail}}), HasSubstr("token 2"));
  EXPECT_THAT(call(mx::ones({2, 8}), {{{0}, &tail}, {{0}, &tail}}), HasSubstr("row 1"));
  auto wrong = zero_conv_tail(3, 8, mx::float32);
  EXPECT_THAT(call(mx::ones({2, 8}), {{{0}, &wrong}}), HasSubstr("tail has shape"));
  EXPECT_THAT(thrown_message([&] {
                ConvWeight(*context, mx::ones({8, 1}));
              }),
              HasSubstr("at least 2"));
}

TEST(CausalConv, CheckModeRecordsTheErrorAndChangesNoResult) {
  auto check = make_check_context();
  const ConvWeight weight(*check, to_array(normal_values(160, 2), {40, 4}));
  auto tail = random_tail(4, 40, 5), other = random_tail(4, 40, 5);
  auto x = to_array(normal_values(240, 1), {6, 40});
  const auto y = to_values(causal_conv(*check, x, weight, {{range(0, 6), &tail}}));
  auto own = make_context();
  EXPECT_TRUE(same_bits(y, to_values(causal_conv(*own, x, weight, {{range(0, 6), &other}}))));
  EXPECT_TRUE(same_bits(to_values(tail), to_values(other)));
  EXPECT_LT(check->check_records().at(Op::kCausalConv).max_abs_error, 1e-5);
  EXPECT_GT(check->check_records().at(Op::kCausalConv).max_reference, 0.5);
}

TEST(ContractCausalConv, CutsGroupingThreadsVariantsAndStridesMoveNoBit) {
  constexpr int kChannels = 300, kTaps = 4, kTokens = 23;
  const auto w = normal_values(kChannels * kTaps, 2);
  auto x = to_array(normal_values(kTokens * kChannels, 1), {kTokens, kChannels});
  std::vector<float> first, first_tail;
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      auto context = make_context(threads, isa);
      const ConvWeight weight(*context, to_array(w, {kChannels, kTaps}));
      auto tail = random_tail(kTaps, kChannels, 5);
      const auto y = to_values(causal_conv(*context, x, weight, {{range(0, kTokens), &tail}}));
      if (first.empty()) first = y, first_tail = to_values(tail);
      EXPECT_TRUE(same_bits(y, first)) << isa_name(isa) << ", " << threads;
      EXPECT_TRUE(same_bits(to_values(tail), first_tail));
    }
  }
  auto context = make_context();
  const ConvWeight weight(*context, to_array(w, {kChannels, kTaps}));
  auto strided_tail = random_tail(kTaps, kChannels, 5);
  EXPECT_TRUE(same_bits(
      to_values(causal_conv(*context, strided(x), weight, {{range(0, kTokens), &strided_tail}})),
      first));
  std::mt19937 rng(4);
  for (int round = 0; round < 20; ++round) {
    // Two rows of the same tokens, interleaved and cut at random.
    auto a = random_tail(kTaps, kChannels, 5), b = random_tail(kTaps, kChannels, 5);
    std::vector<float> got;
    for (int done = 0; done < kTokens;) {
      const int count = std::min<int>(kTokens - done, 1 + rng() % 6);
      auto part = mx::slice(x, {done, 0}, {done + count, kChannels});
      const auto y = to_values(causal_conv(*context,
                                           mx::concatenate({part, part}, 0),
                                           weight,
                                           {{range(0, count), &a}, {range(count, count), &b}}));
      const auto half = y.begin() + count * kChannels;
      ASSERT_TRUE(same_bits({y.begin(), half}, {half, y.end()}));
      got.insert(got.end(), y.begin(), half);
      done += count;
    }
    ASSERT_TRUE(same_bits(got, first));
    ASSERT_TRUE(same_bits(to_values(b), first_tail));
  }
}

}  // namespace
}  // namespace sluice::kernels
