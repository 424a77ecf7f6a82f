#include "kernels/rope/rope.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

constexpr int kHeads = 3;

mx::array random_input(int tokens, int head_dim, uint32_t seed = 1) {
  return to_array(normal_values(size_t(tokens) * kHeads * head_dim, seed),
                  {tokens, kHeads, head_dim});
}

std::vector<RopeSpec> specs(int head_dim) {
  std::vector<RopeSpec> result;
  for (bool traditional : {false, true}) {
    RopeSpec plain;
    plain.dims = head_dim;
    plain.traditional = traditional;
    result.push_back(plain);
    RopeSpec partial = plain;
    partial.dims = head_dim / 4 * 2;
    partial.base = 1e6f;
    partial.scale = 0.25f;
    result.push_back(partial);
    RopeSpec yarn = plain;
    std::vector<float> freqs;
    for (int i = 0; i < head_dim / 2; ++i) freqs.push_back(1.0f + 3.0f * static_cast<float>(i * i));
    yarn.freqs = to_array(freqs, {head_dim / 2});
    yarn.freqs->eval();
    yarn.input_scale = 1.25f;
    result.push_back(yarn);
  }
  return result;
}

// In double precision from exact frequencies; bound[i] is what float32 angles may cost, and the
// roundings of the rotation itself.
void model(const std::vector<float>& x,
           const std::vector<RowSpan>& rows,
           int head_dim,
           const RopeSpec& spec,
           std::vector<double>& y,
           std::vector<double>& bound) {
  y.assign(x.begin(), x.end());
  bound.assign(x.size(), 0);
  const int half = spec.dims / 2;
  for (const RowSpan& row : rows) {
    for (int t = 0; t < row.count; ++t) {
      for (int i = 0; i < half; ++i) {
        const double frequency = spec.freqs ? 1.0 / spec.freqs->data<float>()[i]
                                            : std::pow(double{spec.base}, -double(i) / half);
        const double angle = (row.first_position + t) * double{spec.scale} * frequency;
        for (int h = 0; h < kHeads; ++h) {
          const size_t at = (size_t(row.first_token + t) * kHeads + h) * head_dim;
          const size_t first = at + (spec.traditional ? 2 * i : i);
          const size_t second = at + (spec.traditional ? 2 * i + 1 : i + half);
          const double a = x[first] * double{spec.input_scale};
          const double b = x[second] * double{spec.input_scale};
          y[first] = a * std::cos(angle) - b * std::sin(angle);
          y[second] = a * std::sin(angle) + b * std::cos(angle);
          // MLX's exp of an exponent up to log(base) = 14: 16 u relative; the products: 3 u.
          bound[first] = bound[second] =
              (std::abs(a) + std::abs(b)) * kUnit * (20 * std::abs(angle) + 6);
        }
      }
    }
  }
}

TEST(Rope, MatchesModelAndReference) {
  auto context = make_context();
  const std::vector<std::vector<RowSpan>> passes = {
      {{0, 1, 0}},
      {{0, 1, 4097}},
      {{0, 64, 0}},
      {{0, 5, 63}, {5, 1, 1000}, {6, 30, 0}, {36, 2, 64}}};
  int64_t runs = 0;
  for (int head_dim : {4, 64, 80, 128}) {
    for (const RopeSpec& spec : specs(head_dim)) {
      for (const auto& rows : passes) {
        const int tokens = rows.back().first_token + rows.back().count;
        const auto x = random_input(tokens, head_dim);
        const auto own = to_values(rope(*context, x, rows, spec));
        const auto reference = to_values(rope_reference(x, rows, spec));
        ++runs;
        std::vector<double> expected, bound;
        model(to_values(x), rows, head_dim, spec, expected, bound);
        for (size_t i = 0; i < own.size(); ++i) {
          ASSERT_NEAR(own[i], expected[i], bound[i]) << i;
          // The same float32 angles: what differs is the last place of sine and cosine, and MLX's
          // float32 reduction of large angles.
          ASSERT_NEAR(own[i], reference[i], 2e-6) << i;
        }
      }
    }
  }
  EXPECT_EQ(context->kernel_runs(Op::kRope), runs);
}

TEST(Rope, ValuesBeyondDimsPassThrough) {
  auto context = make_context();
  RopeSpec spec;
  spec.dims = 4;
  const auto x = random_input(3, 10);
  const auto before = to_values(x), after = to_values(rope(*context, x, {{0, 3, 7}}, spec));
  for (size_t i = 0; i < before.size(); ++i) {
    if (i % 10 >= 4) {
      EXPECT_EQ(before[i], after[i]);
    }
  }
  EXPECT_NE(before[0], after[0]);
}

TEST(Rope, CheckModeRecordsTheErrorAndReferenceModeRunsNoKernel) {
  RopeSpec spec;
  spec.dims = 16;
  auto context = make_check_context();
  rope(*context, random_input(5, 16), {{0, 5, 3}}, spec).eval();
  const auto record = context->check_records().at(Op::kRope);
  EXPECT_EQ(record.calls, 1);
  EXPECT_GT(record.max_reference, 0.5);
  EXPECT_LT(record.max_abs_error, 1e-5);
  auto reference = make_reference_context();
  rope(*reference, random_input(5, 16), {{0, 5, 3}}, spec).eval();
  EXPECT_EQ(reference->kernel_runs(Op::kRope), 0);
}

TEST(Rope, RejectsWrongInputs) {
  auto context = make_context();
  RopeSpec spec;
  spec.dims = 8;
  auto call = [&](const std::vector<RowSpan>& rows, const RopeSpec& s) {
    return thrown_message([&] { rope(*context, random_input(4, 8), rows, s); });
  };
  EXPECT_THAT(call({{0, 3, 0}}, spec), HasSubstr("cover 3 tokens, but x has 4"));
  EXPECT_THAT(call({{0, 2, 0}, {1, 3, 0}}, spec), HasSubstr("row 1"));
  EXPECT_THAT(call({{0, 4, -1}}, spec), HasSubstr("position -1"));
  RopeSpec wrong = spec;
  wrong.dims = 10;
  EXPECT_THAT(call({{0, 4, 0}}, wrong), HasSubstr("dims is 10"));
  wrong.dims = 3;
  EXPECT_THAT(call({{0, 4, 0}}, wrong), HasSubstr("dims is 3"));
  wrong = spec;
  wrong.freqs = mx::ones({3});
  EXPECT_THAT(call({{0, 4, 0}}, wrong), HasSubstr("freqs has shape [3]"));
  wrong = spec;
  wrong.base = 0;
  EXPECT_THAT(call({{0, 4, 0}}, wrong), HasSubstr("base is 0"));
  EXPECT_THAT(thrown_message([&] {
                rope(*context, mx::ones({4, 1, 8}, mx::bfloat16), {{0, 4, 0}}, spec);
              }),
              HasSubstr("must be float32"));
}

TEST(ContractRope, TokenByTokenEqualsAnyGrouping) {
  auto context = make_context();
  constexpr int kTokens = 70, kDim = 48, kFirst = 60;
  const auto x = random_input(kTokens, kDim);
  for (const RopeSpec& spec : specs(kDim)) {
    const auto all = to_values(rope(*context, x, {{0, kTokens, kFirst}}, spec));
    const auto split = to_values(
        rope(*context, x, {{0, 30, kFirst}, {30, 1, kFirst + 30}, {31, 39, kFirst + 31}}, spec));
    EXPECT_TRUE(same_bits(split, all));
    for (int t = 0; t < kTokens; ++t) {
      auto token = mx::slice(x, {t, 0, 0}, {t + 1, kHeads, kDim});
      const auto alone = to_values(rope(*context, token, {{0, 1, kFirst + t}}, spec));
      ASSERT_TRUE(same_bits(
          alone, {all.begin() + t * kHeads * kDim, all.begin() + (t + 1) * kHeads * kDim}));
    }
  }
}

TEST(ContractRope, ThreadsAndVariantsAndStridesAreEqual) {
  constexpr int kTokens = 90, kDim = 80;
  const std::vector<RowSpan> rows = {{0, 50, 3}, {50, 40, 5000}};
  const auto x = random_input(kTokens, kDim);
  for (const RopeSpec& spec : specs(kDim)) {
    const auto expected = to_values(rope(*make_context(1, Isa::kGeneric), x, rows, spec));
    for (Isa isa : supported_isas()) {
      for (int threads : {1, 2, 5}) {
        EXPECT_TRUE(
            same_bits(to_values(rope(*make_context(threads, isa), x, rows, spec)), expected));
      }
    }
    auto context = make_context();
    EXPECT_TRUE(same_bits(to_values(rope(*context, strided(x), rows, spec)), expected));
    // A slice of a fused projection, and a temporary that nobody else sees (worked on in place).
    auto fused = mx::concatenate({mx::full_like(x, NAN), x, mx::full_like(x, NAN)}, 1);
    auto part = mx::slice(fused, {0, kHeads, 0}, {kTokens, 2 * kHeads, kDim});
    EXPECT_TRUE(same_bits(to_values(rope(*context, part, rows, spec)), expected));
    auto temporary = mx::multiply(x, mx::array(1.0f));
    EXPECT_TRUE(same_bits(to_values(rope(*context, std::move(temporary), rows, spec)), expected));
  }
}

}  // namespace
}  // namespace sluice::kernels
