#include "kernels/delta_gates/delta_gates.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

struct Inputs {
  mx::array a, b, a_log, dt_bias;
};
Inputs make_inputs(int tokens, int heads) {
  std::vector<float> a_log(heads);
  for (int h = 0; h < heads; ++h) a_log[h] = std::log(0.05f + 16.0f * h / heads);
  return {to_array(normal_values(size_t(tokens) * heads, 1, 6.0f), {tokens, heads}),
          to_array(normal_values(size_t(tokens) * heads, 2, 6.0f), {tokens, heads}),
          to_array(a_log, {heads}),
          to_array(normal_values(heads, 3), {heads})};
}

DeltaGates call(const Context& context, const Inputs& in) {
  return delta_gates(context, in.a, in.b, in.a_log, in.dt_bias);
}

TEST(DeltaGates, MatchesModelAndReference) {
  auto own = make_context();
  auto reference = make_reference_context();
  for (int heads : {1, 9, 16, 33, 48}) {
    const auto in = make_inputs(40, heads);
    const auto gates = call(*own, in), composed = call(*reference, in);
    const auto g = to_values(gates.g), beta = to_values(gates.beta);
    const auto other_g = to_values(composed.g), other_beta = to_values(composed.beta);
    const auto a = to_values(in.a), b = to_values(in.b);
    const auto a_log = to_values(in.a_log), dt_bias = to_values(in.dt_bias);
    for (size_t i = 0; i < g.size(); ++i) {
      const double x = double(a[i]) + dt_bias[i % heads];
      const double exponent = -std::exp(double(a_log[i % heads])) * std::log1p(std::exp(x));
      // The exponent's relative error becomes the result's absolute one times the exponent.
      const double bound = (12 * std::abs(exponent) * (1 + std::abs(x)) + 4) * kUnit;
      ASSERT_NEAR(g[i], std::exp(exponent), bound * std::exp(exponent) + 1e-37) << x;
      ASSERT_NEAR(other_g[i], std::exp(exponent), 4 * bound * std::exp(exponent) + 1e-37) << x;
      const double expected = 1 / (1 + std::exp(-double(b[i])));
      ASSERT_NEAR(beta[i], expected, 6 * kUnit * expected + 1e-37);
      ASSERT_NEAR(other_beta[i], expected, 32 * kUnit * expected + 1e-37);
    }
  }
  EXPECT_EQ(own->kernel_runs(Op::kDeltaGates), 5);
}

TEST(DeltaGates, ExtremeInputs) {
  auto context = make_context();
  const Inputs in{to_array({-1e30f, -200, -90, 0, 90, 1e30f}, {6, 1}),
                  to_array({-1e30f, -100, 0, 100, 1e30f, 0}, {6, 1}),
                  to_array({0.0f}, {1}),
                  to_array({0.0f}, {1})};
  const auto gates = call(*context, in);
  EXPECT_THAT(to_values(gates.g), ::testing::ElementsAre(1, 1, 1, 0.5f, 0, 0));
  EXPECT_THAT(to_values(gates.beta),
              ::testing::ElementsAre(0, ::testing::Lt(1e-30f), 0.5f, 1, 1, 0.5f));
}

TEST(DeltaGates, HalfPrecisionStagesAreTheReferences) {
  auto reference = make_reference_context();
  auto in = make_inputs(5, 8);
  for (auto* x : {&in.a, &in.b, &in.dt_bias}) *x = mx::astype(*x, mx::bfloat16);
  const auto gates = call(*reference, in);
  EXPECT_EQ(gates.g.dtype(), mx::float32);
  EXPECT_EQ(gates.beta.dtype(), mx::bfloat16);
}

TEST(DeltaGates, RejectsWrongInputs) {
  auto context = make_context();
  const auto in = make_inputs(5, 8);
  EXPECT_THAT(thrown_message([&] {
                delta_gates(*context, in.a, mx::ones({5, 7}), in.a_log, in.dt_bias);
              }),
              HasSubstr("b has shape"));
  EXPECT_THAT(thrown_message([&] {
                delta_gates(*context, in.a, in.b, mx::astype(in.a_log, mx::float16), in.dt_bias);
              }),
              HasSubstr("a_log has dtype"));
}

TEST(ContractDeltaGates, RowsThreadsVariantsAndStridesMoveNoBit) {
  const auto in = make_inputs(300, 9);
  std::vector<float> g, beta;
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      auto context = make_context(threads, isa);
      const auto gates = call(*context, in);
      if (g.empty()) g = to_values(gates.g), beta = to_values(gates.beta);
      EXPECT_TRUE(same_bits(to_values(gates.g), g)) << isa_name(isa) << ", " << threads;
      EXPECT_TRUE(same_bits(to_values(gates.beta), beta)) << isa_name(isa) << ", " << threads;
    }
  }
  auto context = make_context();
  const auto gates = call(*context, {strided(in.a), strided(in.b), in.a_log, in.dt_bias});
  EXPECT_TRUE(same_bits(to_values(gates.g), g));
  EXPECT_TRUE(same_bits(to_values(gates.beta), beta));
  for (int r : {0, 7, 299}) {
    auto row = [&](const mx::array& x) { return mx::slice(x, {r, 0}, {r + 1, 9}); };
    const auto alone = call(*context, {row(in.a), row(in.b), in.a_log, in.dt_bias});
    EXPECT_TRUE(same_bits(to_values(alone.g), {g.begin() + r * 9, g.begin() + r * 9 + 9}));
  }
}

}  // namespace
}  // namespace sluice::kernels
