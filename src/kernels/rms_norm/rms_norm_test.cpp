#include "kernels/rms_norm/rms_norm.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

constexpr float kEps = 1e-5f;

// In double precision.
std::vector<double> model(const std::vector<float>& x, const std::vector<float>& weight) {
  const size_t width = weight.size();
  std::vector<double> y(x.size());
  for (size_t row = 0; row < x.size() / width; ++row) {
    double sum = 0;
    for (size_t i = 0; i < width; ++i) sum += double{x[row * width + i]} * x[row * width + i];
    const double inverse = 1.0 / std::sqrt(sum / static_cast<double>(width) + double{kEps});
    for (size_t i = 0; i < width; ++i)
      y[row * width + i] = x[row * width + i] * inverse * weight[i];
  }
  return y;
}

class RmsNormWidth : public ::testing::TestWithParam<int> {};

TEST_P(RmsNormWidth, MatchesModelAndReference) {
  const int width = GetParam();
  auto context = make_context();
  for (int rows : {1, 2, 7, 200}) {
    const auto x = normal_values(size_t(rows) * width, rows + width, 3.0f);
    const auto weight = normal_values(width, 5);
    auto y = rms_norm(*context, to_array(x, {rows, width}), to_array(weight, {width}), kEps);
    const auto own = to_values(y);
    const auto reference =
        to_values(rms_norm_reference(to_array(x, {rows, width}), to_array(weight, {width}), kEps));
    const auto expected = model(x, weight);
    // The sum of squares is relatively exact to (width / 64 + 8) u, its root to half of that; then
    // five roundings. The reference sums one by one.
    const double own_bound = (width / 128.0 + 10) * kUnit, reference_bound = (width + 10) * kUnit;
    for (size_t i = 0; i < own.size(); ++i) {
      const double size = std::abs(expected[i]);
      ASSERT_NEAR(own[i], expected[i], own_bound * size) << i;
      ASSERT_NEAR(own[i], reference[i], (own_bound + reference_bound) * size) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths,
                         RmsNormWidth,
                         ::testing::Values(1, 3, 15, 16, 17, 63, 64, 65, 127, 576, 1000, 4096));

TEST(RmsNorm, CountsItsRuns) {
  auto context = make_context();
  rms_norm(*context, mx::ones({2, 8}), mx::ones({8}), kEps).eval();
  EXPECT_EQ(context->kernel_runs(Op::kRmsNorm), 1);
  auto reference = make_reference_context();
  rms_norm(*reference, mx::ones({2, 8}), mx::ones({8}), kEps).eval();
  EXPECT_EQ(reference->kernel_runs(Op::kRmsNorm), 0);
}

TEST(RmsNorm, CheckModeRecordsTheError) {
  auto context = make_check_context();
  rms_norm(*context, to_array(normal_values(64, 1), {2, 32}), mx::ones({32}), kEps).eval();
  const auto record = context->check_records().at(Op::kRmsNorm);
  EXPECT_EQ(record.calls, 1);
  EXPECT_GT(record.max_reference, 0.5);
  EXPECT_LT(record.max_abs_error, 1e-5);
  EXPECT_EQ(context->kernel_runs(Op::kRmsNorm), 1);
}

TEST(RmsNorm, KeepsItsInputIntact) {
  // The kernel may work in place only when nobody else can see the input.
  auto context = make_context();
  auto x = mx::add(to_array(normal_values(64, 1), {2, 32}), mx::array(1.0f));
  auto sum = mx::add(rms_norm(*context, x, mx::ones({32}), kEps), x);
  auto expected = mx::add(rms_norm_reference(x, mx::ones({32}), kEps), x);
  EXPECT_LT(mx::max(mx::abs(mx::subtract(sum, expected))).item<float>(), 1e-5f);
}

TEST(RmsNorm, RejectsWrongInputs) {
  auto context = make_context();
  auto call = [&](mx::array x, mx::array weight, float eps) {
    return thrown_message([&] { rms_norm(*context, x, weight, eps); });
  };
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({7}), kEps),
              HasSubstr("[rms_norm] weight has shape"));
  EXPECT_THAT(call(mx::array(1.0f), mx::ones({1}), kEps), HasSubstr("last axis"));
  EXPECT_THAT(call(mx::ones({2, 8}, mx::int32), mx::ones({8}), kEps),
              HasSubstr("x has dtype int32"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({8}, mx::float16), kEps),
              HasSubstr("weight has dtype float16"));
  EXPECT_THAT(call(mx::ones({2, 8}, mx::float16), mx::ones({8}, mx::float16), kEps),
              HasSubstr("must be float32"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({8}), NAN), HasSubstr("eps"));
}

class ContractRmsNorm : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kRows = 40;
  const int width_ = GetParam();
  const mx::array weight_ = to_array(normal_values(width_, 5), {width_});
  const mx::array x_ = to_array(normal_values(size_t{kRows} * width_, 6), {kRows, width_});
  std::vector<float> run(const Context& context, const mx::array& x) const {
    return to_values(rms_norm(context, x, weight_, kEps));
  }
};

TEST_P(ContractRmsNorm, EachRowAloneEqualsAllTogether) {
  auto context = make_context();
  const auto all = run(*context, x_);
  for (int r = 0; r < kRows; ++r) {
    const auto alone = run(*context, mx::slice(x_, {r, 0}, {r + 1, width_}));
    EXPECT_TRUE(same_bits(alone, {all.begin() + r * width_, all.begin() + (r + 1) * width_}));
  }
}

TEST_P(ContractRmsNorm, ThreadsAndVariantsAndStridesAreEqual) {
  const auto expected = run(*make_context(1, Isa::kGeneric), x_);
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      EXPECT_TRUE(same_bits(run(*make_context(threads, isa), x_), expected))
          << isa_name(isa) << ", " << threads << " threads";
    }
  }
  auto context = make_context();
  EXPECT_TRUE(same_bits(run(*context, strided(x_)), expected));
  EXPECT_TRUE(same_bits(run(*context, mx::transpose(mx::contiguous(mx::transpose(x_)))), expected));
  EXPECT_TRUE(same_bits(to_values(rms_norm(*context, x_, strided(weight_), kEps)), expected));
  // A slice of a fused projection, as heads: [N, 2, H, D] -> [N, H, D].
  auto heads = mx::reshape(x_, {kRows / 4, 4, width_});
  auto fused = mx::stack({mx::full_like(heads, NAN), heads}, 1);
  auto part =
      mx::squeeze(mx::slice(fused, {0, 1, 0, 0}, {kRows / 4, 2, 4, width_}), std::vector<int>{1});
  EXPECT_TRUE(same_bits(run(*context, part), expected));
}

INSTANTIATE_TEST_SUITE_P(Widths, ContractRmsNorm, ::testing::Values(1, 20, 64, 576, 1100));

TEST(RmsNorm, OneScaleIsTheL2Norm) {
  constexpr int kWidth = 64;
  const auto values = normal_values(5 * kWidth, 1, 0.2f);
  auto x = to_array(values, {5, kWidth});
  const NormScale scale(std::pow(double(kWidth), -0.5), kWidth);
  const float eps = 1e-6f / kWidth;
  for (auto* make : {+[] { return make_context(); }, +[] { return make_reference_context(); }}) {
    auto context = make();
    const auto y = to_values(rms_norm(*context, x, scale, eps));
    for (int r = 0; r < 5; ++r) {
      double squares = 0;
      for (int i = 0; i < kWidth; ++i)
        squares += double(values[r * kWidth + i]) * values[r * kWidth + i];
      for (int i = 0; i < kWidth; ++i) {
        const double expected = values[r * kWidth + i] / std::sqrt(squares + 1e-6);
        ASSERT_NEAR(y[r * kWidth + i], expected, 24 * kUnit * std::abs(expected));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
