#include "kernels/swiglu/swiglu.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

TEST(Swiglu, MatchesModelAndReference) {
  auto context = make_context();
  for (int width : {1, 15, 16, 17, 1023, 1024, 1025, 1536}) {
    for (int rows : {1, 2, 33}) {
      const auto gate = normal_values(size_t(rows) * width, width, 8.0f);
      const auto up = normal_values(size_t(rows) * width, width + 1);
      auto g = to_array(gate, {rows, width}), u = to_array(up, {rows, width});
      const auto own = to_values(swiglu(*context, g, u));
      const auto reference = to_values(swiglu_reference(g, u));
      for (size_t i = 0; i < own.size(); ++i) {
        const double expected = gate[i] / (1 + std::exp(-double{gate[i]})) * up[i];
        // exp to 1.1 ulp (2.2 u), then four roundings; the reference's sigmoid is Cephes-like too.
        ASSERT_NEAR(own[i], expected, 7 * kUnit * std::abs(expected) + 1e-44) << gate[i];
        ASSERT_NEAR(own[i], reference[i], 32 * kUnit * std::abs(expected) + 1e-37) << gate[i];
      }
    }
  }
}

TEST(Swiglu, ExtremeGates) {
  auto context = make_context();
  const std::vector<float> gate = {0.0f, -0.0f, 87.0f, 1e30f, -87.0f, -88.6f, -1e30f, -103.0f};
  const auto y = to_values(swiglu(*context, to_array(gate, {8}), mx::full({8}, 2.0f, mx::float32)));
  for (size_t i = 0; i < gate.size(); ++i) {
    const double expected = gate[i] / (1 + std::exp(-double{gate[i]})) * 2;
    // Below about -88 the result is smaller than the smallest normal float times 100.
    EXPECT_NEAR(y[i], expected, 8 * kUnit * std::abs(expected) + 1e-36) << gate[i];
  }
}

TEST(Swiglu, CountsItsRuns) {
  auto context = make_context();
  swiglu(*context, mx::ones({2, 8}), mx::ones({2, 8})).eval();
  EXPECT_EQ(context->kernel_runs(Op::kSwiglu), 1);
  auto reference = make_reference_context();
  swiglu(*reference, mx::ones({2, 8}), mx::ones({2, 8})).eval();
  EXPECT_EQ(reference->kernel_runs(Op::kSwiglu), 0);
}

TEST(Swiglu, CheckModeRecordsTheError) {
  auto context = make_check_context();
  auto x = to_array(normal_values(64, 1), {2, 32});
  swiglu(*context, x, x).eval();
  const auto record = context->check_records().at(Op::kSwiglu);
  EXPECT_EQ(record.calls, 1);
  EXPECT_GT(record.max_reference, 0.5);
  EXPECT_LT(record.max_abs_error, 1e-5);
}

TEST(Swiglu, KeepsItsInputsIntact) {
  auto context = make_context();
  auto x = mx::add(to_array(normal_values(64, 1), {2, 32}), mx::array(1.0f));
  auto y = mx::add(to_array(normal_values(64, 2), {2, 32}), mx::array(1.0f));
  auto sum = mx::add(mx::add(swiglu(*context, x, y), x), y);
  auto expected = mx::add(mx::add(swiglu_reference(x, y), x), y);
  EXPECT_LT(mx::max(mx::abs(mx::subtract(sum, expected))).item<float>(), 1e-5f);
}

TEST(Swiglu, RejectsWrongInputs) {
  auto context = make_context();
  auto call = [&](mx::array gate, mx::array up) {
    return thrown_message([&] { swiglu(*context, gate, up); });
  };
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 7})), HasSubstr("must be equal"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 8}, mx::float16)), HasSubstr("up has dtype"));
  EXPECT_THAT(call(mx::ones({8}, mx::float16), mx::ones({8}, mx::float16)),
              HasSubstr("must be float32"));
}

TEST(ContractSwiglu, EachRowAloneEqualsAllTogether) {
  auto context = make_context();
  constexpr int kRows = 9, kWidth = 1500;
  auto gate = to_array(normal_values(kRows * kWidth, 1, 5.0f), {kRows, kWidth});
  auto up = to_array(normal_values(kRows * kWidth, 2), {kRows, kWidth});
  const auto all = to_values(swiglu(*context, gate, up));
  for (int r = 0; r < kRows; ++r) {
    auto row = [&](const mx::array& x) { return mx::slice(x, {r, 0}, {r + 1, kWidth}); };
    EXPECT_TRUE(same_bits(to_values(swiglu(*context, row(gate), row(up))),
                          {all.begin() + r * kWidth, all.begin() + (r + 1) * kWidth}));
  }
}

TEST(ContractSwiglu, ThreadsAndVariantsAndStridesAreEqual) {
  constexpr int kRows = 9, kWidth = 1500;
  auto gate = to_array(normal_values(kRows * kWidth, 1, 20.0f), {kRows, kWidth});
  auto up = to_array(normal_values(kRows * kWidth, 2), {kRows, kWidth});
  const auto expected = to_values(swiglu(*make_context(1, Isa::kGeneric), gate, up));
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      EXPECT_TRUE(same_bits(to_values(swiglu(*make_context(threads, isa), gate, up)), expected))
          << isa_name(isa) << ", " << threads << " threads";
    }
  }
  auto context = make_context();
  EXPECT_TRUE(same_bits(to_values(swiglu(*context, strided(gate), strided(up))), expected));
  auto fused = mx::concatenate({gate, up}, 1);
  auto left = mx::slice(fused, {0, 0}, {kRows, kWidth});
  auto right = mx::slice(fused, {0, kWidth}, {kRows, 2 * kWidth});
  EXPECT_TRUE(same_bits(to_values(swiglu(*context, left, right)), expected));
}

}  // namespace
}  // namespace sluice::kernels
