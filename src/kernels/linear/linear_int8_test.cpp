// linear with int8 activations.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/linear/linear_cpu.h"
#include "kernels/linear/linear_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

LinearWeight prepare(const Context& context, const Quantized& q) {
  return q.prepare(context, std::nullopt, Activations::kInt8);
}

// x as the kernel sees it, by the definition in linear_kernels.h, and half a step of each value's
// group: the most that a value is off.
struct QuantizedInput {
  mx::array values;
  std::vector<double> half_step;
};

QuantizedInput quantize_input(const mx::array& x) {
  auto values = to_values(x);
  std::vector<double> half_step;
  for (size_t begin = 0; begin < values.size(); begin += kInt8Group) {
    float largest = 0;
    for (int i = 0; i < kInt8Group; ++i) {
      largest = std::max(largest, std::abs(values[begin + i]));
    }
    const float inverse = largest < kInt8ZeroBelow ? 0 : 127 / largest;
    const float scale = largest < kInt8ZeroBelow ? 0 : largest / 127;
    for (int i = 0; i < kInt8Group; ++i) {
      const double steps = std::nearbyint(double{values[begin + i]} * inverse);
      EXPECT_LE(std::abs(steps), 127);
      // inverse and scale are rounded: up to 127 steps are off by 127 of their errors.
      half_step.push_back(scale * (0.5 + 127 * 3 * kUnit));
      values[begin + i] = static_cast<float>(steps * scale);
    }
  }
  return {to_array(values, x.shape()), std::move(half_step)};
}

class LinearInt8Formats : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int bits() const { return std::get<0>(GetParam()); }
  int group() const { return std::get<1>(GetParam()); }
};
using ContractLinearInt8Formats = LinearInt8Formats;

const auto kAllFormats =
    ::testing::Combine(::testing::Values(2, 3, 4, 5, 6, 8), ::testing::Values(32, 64, 128));
INSTANTIATE_TEST_SUITE_P(All, LinearInt8Formats, kAllFormats);
INSTANTIATE_TEST_SUITE_P(All, ContractLinearInt8Formats, kAllFormats);

// Against the exact product with the quantized input: only float32 rounding is left.
TEST_P(LinearInt8Formats, MultipliesTheQuantizedInputWithinTheRoundingBound) {
  auto context = make_context();
  for (int k : {group(), 3 * group(), 384}) {
    for (int n : {1, 9, 16, 65}) {
      const Quantized q = quantize(n, k, bits(), group());
      const ExactWeight w = exact(q);
      const LinearWeight weight = prepare(*context, q);
      for (int m : {1, 2, 3, 4, 5, 7, 12, 33}) {
        const mx::array x = random_array({m, k}, m);
        expect_within_bound(linear(*context, x, weight), quantize_input(x).values, w);
      }
    }
  }
}

// Against the reference on the input itself: half a step of each activation, times its weight.
TEST_P(LinearInt8Formats, ErrorIsWithinHalfAStepOfEveryActivation) {
  auto context = make_context();
  constexpr int kN = 9, kM = 7;
  const int k = 3 * group();
  const Quantized q = quantize(kN, k, bits(), group());
  const ExactWeight w = exact(q);
  const mx::array x = random_array({kM, k}, 2);
  const auto half_step = quantize_input(x).half_step;
  const auto y = to_values(linear(*context, x, prepare(*context, q)));
  const auto expected =
      to_values(mx::quantized_matmul(x, q.weight, q.scales, q.biases, true, group(), bits()));
  const auto input = to_values(x);
  double error = 0;
  for (int r = 0; r < kM; ++r) {
    for (int n = 0; n < kN; ++n) {
      double bound = 0;
      for (int i = 0; i < k; ++i) {
        bound += std::abs(w.value[n * k + i]) * half_step[r * k + i];
        bound += 2 * w.terms * kUnit * w.magnitude[n * k + i] * std::abs(input[r * k + i]);
      }
      const double difference = std::abs(y[r * kN + n] - expected[r * kN + n]);
      ASSERT_LE(difference, bound) << "row " << r << ", output " << n;
      error = std::max(error, difference);
    }
  }
  EXPECT_GT(error, 1e-4) << "the activations were not quantized";
}

TEST_P(ContractLinearInt8Formats, ARowIsTheSameAloneAndInAnyBatch) {
  auto context = make_context();
  constexpr int kRows = 257;
  const int k = 3 * group();
  for (int n : {9, 200}) {
    const LinearWeight weight = prepare(*context, quantize(n, k, bits(), group()));
    const mx::array x = random_array({kRows, k}, 5);
    std::vector<std::vector<float>> alone;
    for (int r = 0; r < kRows; ++r) {
      alone.push_back(to_values(linear(*context, mx::slice(x, {r, 0}, {r + 1, k}), weight)));
    }
    std::vector<int> counts = {64, kRows};
    for (int m = 1; m <= 33; ++m) counts.push_back(m);
    for (int m : counts) {
      const int first = kRows - m;  // so that a row meets several places in a tile
      const auto y = to_values(linear(*context, mx::slice(x, {first, 0}, {kRows, k}), weight));
      for (int r = 0; r < m; ++r) {
        const std::vector<float> row(y.begin() + r * n, y.begin() + (r + 1) * n);
        ASSERT_TRUE(same_bits(row, alone[first + r])) << "row " << r << " of " << m;
      }
    }
  }
}

TEST_P(ContractLinearInt8Formats, InstructionSetVariantsAndThreadCountsAgree) {
  for (int groups : {1, 3}) {
    const Quantized q = quantize(65, groups * group(), bits(), group());
    for (int m : {1, 5, 12, 33}) {
      const mx::array x = random_array({m, groups * group()}, m);
      auto run = [&](Isa isa, int threads) {
        auto context = make_context(threads, isa);
        return to_values(linear(*context, x, prepare(*context, q)));
      };
      const auto expected = run(Isa::kGeneric, 1);
      for (Isa isa : supported_isas()) {
        for (int threads : {1, 2, 5}) {
          ASSERT_TRUE(same_bits(run(isa, threads), expected))
              << isa_name(isa) << ", " << threads << " threads, " << m << " rows";
        }
      }
    }
  }
}

TEST(ContractLinearInt8, BlocksOfRowsDoNotShow) {
  auto context = make_context();
  const LinearWeight weight = prepare(*context, quantize(33, 8192, 4, 32));
  const mx::array x = random_array({70, 8192}, 3);
  const auto together = to_values(linear(*context, x, weight));
  for (int r = 0; r < 70; ++r) {
    const auto alone = to_values(linear(*context, mx::slice(x, {r, 0}, {r + 1, 8192}), weight));
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * 33, 33 * sizeof(float)), 0) << r;
  }
}

// The largest weights and activations of either sign: where 16-bit sums would saturate first.
TEST(ContractLinearInt8, ExtremeValuesAreExactInEveryVariant) {
  constexpr int kK = 256, kN = 16;
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    const mx::array weight =
        mx::full({kN, kK * bits / 32}, mx::array(uint32_t{0xffffffff}), mx::uint32);
    const mx::array scales = mx::ones({kN, kK / 128}), biases = mx::zeros({kN, kK / 128});
    for (float sign : {1.0f, -1.0f}) {
      const mx::array x = mx::full({5, kK}, sign * 127.0f, mx::float32);
      for (Isa isa : supported_isas()) {
        auto context = make_context(2, isa);
        const auto y = to_values(linear(
            *context,
            x,
            LinearWeight::affine(
                *context, weight, scales, biases, bits, 128, std::nullopt, Activations::kInt8)));
        for (float value : y) ASSERT_EQ(value, sign * 127 * kK * ((1 << bits) - 1));
      }
    }
  }
}

TEST(ContractLinearInt8, NonContiguousInputsGiveTheSameBits) {
  auto context = make_context();
  const LinearWeight weight = prepare(*context, quantize(40, 64, 4, 32));
  const mx::array x = random_array({64, 64}, 4);
  for (const mx::array& view : {mx::transpose(x),
                                mx::slice(x, {0, 0}, {64, 64}, {3, 1}),
                                mx::slice(random_array({5, 128}, 6), {0, 0}, {5, 128}, {1, 2})}) {
    const mx::array copy = to_array(to_values(view), view.shape());
    EXPECT_TRUE(same_bits(to_values(linear(*context, view, weight)),
                          to_values(linear(*context, copy, weight))));
  }
}

TEST(LinearInt8, BiasVectorIsAdded) {
  auto context = make_context();
  const mx::array bias = random_array({37}, 9), x = random_array({7, 64}, 8);
  const Quantized q = quantize(37, 64, 4, 32);
  expect_within_bound(linear(*context, x, q.prepare(*context, bias, Activations::kInt8)),
                      quantize_input(x).values,
                      exact(q),
                      to_values(bias));
}

TEST(LinearInt8, ScalesOfEveryDtypeAreExact) {
  auto context = make_context();
  const mx::array x = random_array({3, 128}, 1);
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16, mx::float32}) {
    const Quantized q = quantize(40, 128, 4, 32, dtype);
    expect_within_bound(
        linear(*context, x, prepare(*context, q)), quantize_input(x).values, exact(q));
  }
}

// Zeros, values too small to quantize, a huge one; and what is not finite stays in its row.
TEST(ContractLinearInt8, UnusualInputs) {
  constexpr int kK = 64, kN = 17;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Quantized q = quantize(kN, kK, 4, 32);
  auto values = normal_values(7 * kK, 3);
  auto row = [&](int r) { return values.begin() + r * kK; };
  std::fill_n(row(0), kK, 0.0f);
  for (int i = 0; i < kK; ++i) row(1)[i] *= 1e-37f;
  row(2)[5] = 1e36f;
  row(3)[40] = NAN;
  row(4)[0] = kInfinity;
  row(5)[63] = -kInfinity;
  const mx::array x = to_array(values, {7, kK});
  for (Isa isa : supported_isas()) {
    auto context = make_context(2, isa);
    const LinearWeight weight = prepare(*context, q);
    const auto y = to_values(linear(*context, x, weight));
    for (int n = 0; n < kN; ++n) {
      EXPECT_EQ(y[n], 0);
      EXPECT_EQ(y[kN + n], 0);
      EXPECT_TRUE(std::isfinite(y[2 * kN + n]));
      for (int r : {3, 4, 5}) EXPECT_FALSE(std::isfinite(y[r * kN + n])) << r;
    }
    const auto alone = to_values(linear(*context, mx::slice(x, {6, 0}, {7, kK}), weight));
    EXPECT_EQ(std::memcmp(alone.data(), y.data() + 6 * kN, kN * sizeof(float)), 0);
  }
}

TEST(LinearInt8, TheKernelRunsAndTheReferenceStaysAsItIs) {
  const Quantized q = quantize(40, 64, 4, 32);
  const mx::array x = random_array({2, 64}, 4);
  auto own = make_context();
  LinearWeight weight = prepare(*own, q);
  EXPECT_EQ(weight.activations(), Activations::kInt8);
  EXPECT_EQ(weight.packed()->view.activations, Activations::kInt8);
  to_values(linear(*own, x, weight));
  EXPECT_EQ(own->kernel_runs(Op::kLinear), 1);
  auto reference = make_reference_context();
  weight = prepare(*reference, q);
  EXPECT_EQ(weight.activations(), Activations::kFloat32);
  EXPECT_TRUE(
      same_bits(to_values(linear(*reference, x, weight)),
                to_values(mx::quantized_matmul(x, q.weight, q.scales, q.biases, true, 32, 4))));
}

}  // namespace
}  // namespace sluice::kernels
