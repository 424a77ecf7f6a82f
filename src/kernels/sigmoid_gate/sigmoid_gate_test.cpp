#include "kernels/sigmoid_gate/sigmoid_gate.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

TEST(SigmoidGate, MatchesModelAndReference) {
  auto context = make_context();
  for (int width : {1, 15, 16, 17, 1023, 1024, 1025, 1536}) {
    for (int rows : {1, 2, 33}) {
      const auto gate = normal_values(size_t(rows) * width, width, 8.0f);
      const auto x = normal_values(size_t(rows) * width, width + 1);
      auto a = to_array(x, {rows, width}), g = to_array(gate, {rows, width});
      const auto own = to_values(sigmoid_gate(*context, a, g));
      const auto reference = to_values(sigmoid_gate_reference(a, g));
      for (size_t i = 0; i < own.size(); ++i) {
        const double expected = x[i] / (1 + std::exp(-double{gate[i]}));
        // exp to 1.1 ulp (2.2 u), then two roundings.
        ASSERT_NEAR(own[i], expected, 5 * kUnit * std::abs(expected) + 1e-44) << gate[i];
        ASSERT_NEAR(own[i], reference[i], 32 * kUnit * std::abs(expected) + 1e-37) << gate[i];
      }
    }
  }
  EXPECT_EQ(context->kernel_runs(Op::kSigmoidGate), 24);
}

TEST(SigmoidGate, OneGateForARow) {
  auto context = make_context();
  auto x = to_array(normal_values(3 * 40, 1), {3, 40});
  auto gate = to_array(normal_values(3, 2), {3, 1});
  const auto own = to_values(sigmoid_gate(*context, x, gate));
  const auto full = to_values(sigmoid_gate(*context, x, mx::repeat(gate, 40, 1)));
  EXPECT_TRUE(same_bits(own, full));
}

TEST(SigmoidGate, RejectsWrongInputs) {
  auto context = make_context();
  auto call = [&](mx::array x, mx::array gate) {
    return thrown_message([&] { sigmoid_gate(*context, x, gate); });
  };
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 7})), HasSubstr("must broadcast"));
  EXPECT_THAT(call(mx::ones({8}), mx::ones({2, 8})), HasSubstr("must broadcast"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 8}, mx::float16)), HasSubstr("gate has dtype"));
  EXPECT_THAT(call(mx::ones({8}, mx::float16), mx::ones({8}, mx::float16)),
              HasSubstr("must be float32"));
}

TEST(ContractSigmoidGate, RowsThreadsVariantsAndStridesMoveNoBit) {
  constexpr int kRows = 9, kWidth = 1500;
  auto x = to_array(normal_values(kRows * kWidth, 2), {kRows, kWidth});
  auto gate = to_array(normal_values(kRows * kWidth, 1, 20.0f), {kRows, kWidth});
  const auto expected = to_values(sigmoid_gate(*make_context(1, Isa::kGeneric), x, gate));
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      EXPECT_TRUE(
          same_bits(to_values(sigmoid_gate(*make_context(threads, isa), x, gate)), expected))
          << isa_name(isa) << ", " << threads << " threads";
    }
  }
  auto context = make_context();
  EXPECT_TRUE(same_bits(to_values(sigmoid_gate(*context, strided(x), strided(gate))), expected));
  for (int r = 0; r < kRows; ++r) {
    auto row = [&](const mx::array& a) { return mx::slice(a, {r, 0}, {r + 1, kWidth}); };
    EXPECT_TRUE(same_bits(to_values(sigmoid_gate(*context, row(x), row(gate))),
                          {expected.begin() + r * kWidth, expected.begin() + (r + 1) * kWidth}));
  }
}

}  // namespace
}  // namespace sluice::kernels
