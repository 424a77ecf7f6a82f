#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/linear/linear_cpu.h"
#include "kernels/linear/linear_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

class LinearFormats : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int bits() const { return std::get<0>(GetParam()); }
  int group() const { return std::get<1>(GetParam()); }
};
using ContractLinearFormats = LinearFormats;

const auto kAllFormats =
    ::testing::Combine(::testing::Values(2, 3, 4, 5, 6, 8), ::testing::Values(32, 64, 128));
INSTANTIATE_TEST_SUITE_P(All, LinearFormats, kAllFormats);
INSTANTIATE_TEST_SUITE_P(All, ContractLinearFormats, kAllFormats);

TEST_P(LinearFormats, ErrorIsWithinTheRoundingBound) {
  auto context = make_context();
  for (int n : {1, 9, 16, 17, 65}) {
    const Quantized q = quantize(n, 384, bits(), group());
    const ExactWeight w = exact(q);
    const LinearWeight weight = q.prepare(*context);
    for (int m : kRowCounts) {
      const mx::array x = random_array({m, 384}, m);
      expect_within_bound(linear(*context, x, weight), x, w);
    }
  }
}

TEST_P(ContractLinearFormats, ARowIsTheSameAloneAndInAnyBatch) {
  auto context = make_context();
  for (int n : {17, 200}) {
    const LinearWeight weight = quantize(n, 384, bits(), group()).prepare(*context);
    const mx::array x = random_array({64, 384}, 5);
    std::vector<std::vector<float>> alone;
    for (int r = 0; r < 64; ++r) {
      alone.push_back(to_values(linear(*context, mx::slice(x, {r, 0}, {r + 1, 384}), weight)));
    }
    for (int m : kRowCounts) {
      const int first = 64 - m;  // so that a row meets several places in a tile
      const auto y = to_values(linear(*context, mx::slice(x, {first, 0}, {64, 384}), weight));
      for (int r = 0; r < m; ++r) {
        const std::vector<float> row(y.begin() + r * n, y.begin() + (r + 1) * n);
        ASSERT_TRUE(same_bits(row, alone[first + r])) << "row " << r << " of " << m;
      }
    }
  }
}

TEST_P(ContractLinearFormats, InstructionSetVariantsAndThreadCountsAgree) {
  const Quantized q = quantize(65, 384, bits(), group());
  for (int m : {1, 5, 12, 33}) {
    const mx::array x = random_array({m, 384}, m);
    auto run = [&](Isa isa, int threads) {
      auto context = make_context(threads, isa);
      return to_values(linear(*context, x, q.prepare(*context)));
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

TEST(Linear, LongInputsInManyBlocksStayWithinTheBound) {
  auto context = make_context();
  const Quantized q = quantize(33, 4096, 4, 64);
  const mx::array x = random_array({70, 4096}, 3);
  expect_within_bound(linear(*context, x, q.prepare(*context)), x, exact(q));
}

TEST(ContractLinear, BlocksOfRowsDoNotShow) {
  auto context = make_context();
  const LinearWeight weight = quantize(33, 4096, 8, 32).prepare(*context);
  const mx::array x = random_array({70, 4096}, 3);
  const auto together = to_values(linear(*context, x, weight));
  for (int r = 0; r < 70; ++r) {
    const auto alone = to_values(linear(*context, mx::slice(x, {r, 0}, {r + 1, 4096}), weight));
    ASSERT_EQ(std::memcmp(alone.data(), together.data() + r * 33, 33 * sizeof(float)), 0) << r;
  }
}

// float16, bfloat16, float32 that holds narrow values, float32 that does not, and mixed.
TEST(Linear, ScalesOfEveryDtypeAreExact) {
  auto context = make_context();
  const mx::array x = random_array({3, 128}, 1);
  const Quantized full = quantize(40, 128, 4, 32);
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16, mx::float32}) {
    Quantized q = quantize(40, 128, 4, 32, dtype);
    const auto y = to_values(linear(*context, x, q.prepare(*context)));
    expect_within_bound(mx::array(y.begin(), {3, 40}, mx::float32), x, exact(q));
    const size_t narrow_bytes = q.prepare(*context).nbytes();
    q.scales = mx::astype(q.scales, mx::float32);
    q.biases = mx::astype(q.biases, mx::float32);
    EXPECT_TRUE(same_bits(to_values(linear(*context, x, q.prepare(*context))), y));
    EXPECT_EQ(q.prepare(*context).nbytes(), narrow_bytes) << "narrow values were not recognised";
  }
  Quantized mixed = full;
  mixed.biases = mx::astype(full.biases, mx::bfloat16);
  expect_within_bound(linear(*context, x, mixed.prepare(*context)), x, exact(mixed));
}

// Every value that a half can hold, subnormals included, survives the narrowing.
TEST(Linear, NarrowedScalesKeepEveryHalf) {
  auto context = make_context();
  std::vector<float> halves;
  for (int i = 0; i < 65536; ++i) {
    mx::float16_t half;
    const uint16_t bits = static_cast<uint16_t>(i);
    std::memcpy(&half, &bits, 2);
    const float value = static_cast<float>(half);
    if (std::isfinite(value)) halves.push_back(value);
  }
  const int n = static_cast<int>(halves.size());
  const mx::array biases(halves.begin(), {n, 1}, mx::float32);
  const LinearWeight weight = LinearWeight::affine(
      *context, mx::zeros({n, 4}, mx::uint32), mx::zeros({n, 1}, mx::float32), biases, 4, 32);
  EXPECT_EQ(weight.packed()->view.scale_format, ScaleFormat::kFloat16);
  std::vector<float> row(32);
  for (int i = 0; i < n; ++i) {
    unpack_row(weight.packed()->view, i, row.data());
    ASSERT_EQ(row[31], halves[i]);
  }
}

TEST(Linear, DenseErrorIsWithinTheRoundingBound) {
  auto context = make_context();
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    for (int k : {1, 15, 16, 100, 128, 129, 576}) {
      for (int n : {1, 9, 16, 65}) {
        const mx::array w = mx::astype(random_array({n, k}, n + k), dtype);
        const LinearWeight weight = LinearWeight::dense(*context, w);
        for (int m : {1, 2, 5, 13}) {
          const mx::array x = random_array({m, k}, m);
          expect_within_bound(linear(*context, x, weight), x, exact_dense(w));
        }
      }
    }
  }
}

TEST(ContractLinear, DenseRowsVariantsAndThreadCountsAgree) {
  const mx::array x = random_array({33, 300}, 2);
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    const mx::array w = mx::astype(random_array({50, 300}, 1), dtype);
    auto one = make_context(1, Isa::kGeneric);
    const auto expected = to_values(linear(*one, x, LinearWeight::dense(*one, w)));
    for (Isa isa : supported_isas()) {
      for (int threads : {1, 2, 5}) {
        auto context = make_context(threads, isa);
        const LinearWeight weight = LinearWeight::dense(*context, w);
        ASSERT_TRUE(same_bits(to_values(linear(*context, x, weight)), expected));
        for (int r : {0, 7, 32}) {
          const auto row = to_values(linear(*context, mx::slice(x, {r, 0}, {r + 1, 300}), weight));
          ASSERT_EQ(std::memcmp(row.data(), expected.data() + r * 50, 50 * sizeof(float)), 0);
        }
      }
    }
  }
}

TEST(Linear, BiasVectorIsAdded) {
  auto context = make_context();
  const mx::array bias = mx::astype(random_array({37}, 9), mx::float16);
  const mx::array x = random_array({7, 64}, 8);
  const Quantized q = quantize(37, 64, 4, 32);
  expect_within_bound(linear(*context, x, q.prepare(*context, bias)), x, exact(q), to_values(bias));
  const mx::array w = random_array({37, 64}, 7);
  expect_within_bound(linear(*context, x, LinearWeight::dense(*context, w, bias)),
                      x,
                      exact_dense(w),
                      to_values(bias));
}

TEST(ContractLinear, NonContiguousInputsGiveTheSameBits) {
  auto context = make_context();
  const LinearWeight weight = quantize(40, 64, 4, 32).prepare(*context);
  const mx::array x = random_array({64, 64}, 4);
  auto check = [&](const mx::array& view) {
    const auto flat = to_values(view);
    const mx::array copy(flat.begin(), view.shape(), mx::float32);
    EXPECT_TRUE(same_bits(to_values(linear(*context, view, weight)),
                          to_values(linear(*context, copy, weight))));
  };
  check(mx::transpose(x));
  check(mx::slice(x, {0, 0}, {64, 64}, {3, 1}));
  check(mx::slice(random_array({5, 100}, 6), {0, 7}, {5, 71}));
  check(mx::slice(random_array({5, 128}, 6), {0, 0}, {5, 128}, {1, 2}));
  check(mx::broadcast_to(mx::slice(x, {3, 0}, {4, 64}), {9, 64}));
  check(mx::broadcast_to(mx::slice(x, {0, 3}, {64, 4}), {64, 64}));
}

TEST(Linear, AChainOfLazyOpsIsEvaluatedInOrder) {
  auto context = make_context();
  const LinearWeight weight = quantize(64, 64, 8, 32).prepare(*context);
  mx::array lazy = random_array({4, 64}, 12);
  std::vector<float> eager = to_values(lazy);
  for (int i = 0; i < 30; ++i) {
    lazy = mx::multiply(linear(*context, lazy, weight), mx::array(0.1f));
    const mx::array x(eager.begin(), {4, 64}, mx::float32);
    eager = to_values(mx::multiply(linear(*context, x, weight), mx::array(0.1f)));
  }
  EXPECT_TRUE(same_bits(to_values(lazy), eager));
}

TEST(Linear, NoRowsGiveNoRows) {
  auto context = make_context();
  const LinearWeight weight = quantize(40, 64, 4, 32).prepare(*context);
  EXPECT_EQ(linear(*context, mx::zeros({0, 64}, mx::float32), weight).shape(), (mx::Shape{0, 40}));
}

TEST(Linear, TheBackendAskedForIsTheOneThatRuns) {
  const mx::array x = random_array({2, 64}, 4);
  const Quantized q = quantize(40, 64, 4, 32);
  auto own = make_context();
  LinearWeight weight = q.prepare(*own);
  EXPECT_FALSE(weight.weight().has_value());
  to_values(linear(*own, x, weight));
  to_values(linear(*own, x, weight));
  EXPECT_EQ(own->kernel_runs(Op::kLinear), 2);

  ContextOptions options;
  options.backend = Backend::kReference;
  auto reference = std::move(Context::create(options)).value();
  weight = q.prepare(*reference);
  EXPECT_EQ(weight.packed(), nullptr);
  EXPECT_EQ(weight.nbytes(), q.weight.nbytes() + q.scales.nbytes() + q.biases.nbytes());
  EXPECT_TRUE(
      same_bits(to_values(linear(*reference, x, weight)),
                to_values(mx::quantized_matmul(x, q.weight, q.scales, q.biases, true, 32, 4))));
  EXPECT_EQ(reference->kernel_runs(Op::kLinear), 0);
}

TEST(Linear, CheckModeRecordsTheLargestError) {
  ContextOptions options;
  options.check = true;
  auto context = std::move(Context::create(options)).value();
  const LinearWeight weight = quantize(40, 64, 4, 32).prepare(*context);
  const mx::array x = random_array({5, 64}, 4);
  linear(*context, x, weight);
  linear(*context, x, weight);
  const CheckRecord record = context->check_records().at(Op::kLinear);
  EXPECT_EQ(record.calls, 2);
  EXPECT_GT(record.max_reference, 1);
  EXPECT_LT(record.max_abs_error, 1e-5 * record.max_reference);
  // A reference that is off shows.
  context->compare(Op::kLinear, x, mx::add(x, mx::array(0.5f)));
  EXPECT_NEAR(context->check_records().at(Op::kLinear).max_abs_error, 0.5, 1e-3);
}

void expect_error(const std::function<void()>& call, ErrorCode code, const std::string& part) {
  try {
    call();
    FAIL() << "no error; expected one with '" << part << "'";
  } catch (const Exception& error) {
    EXPECT_EQ(error.error().code, code);
    EXPECT_NE(error.error().message.find(part), std::string::npos) << error.what();
  }
}

TEST(Linear, WrongArgumentsAreNamed) {
  auto context = make_context();
  const Quantized q = quantize(40, 64, 4, 32);
  const auto kArgument = ErrorCode::kInvalidArgument, kUnsupported = ErrorCode::kUnsupported;
  auto affine = [&](const mx::array& w, const mx::array& scales, int bits, int group) {
    return [=, &context, &q] { LinearWeight::affine(*context, w, scales, q.biases, bits, group); };
  };
  expect_error(affine(q.weight, q.scales, 7, 32), kUnsupported, "7-bit");
  expect_error(affine(q.weight, q.scales, 4, 16), kUnsupported, "groups of 16");
  expect_error(affine(q.weight, q.scales, 5, 32), kArgument, "multiple of 5 words");
  expect_error(affine(q.scales, q.scales, 4, 32), kArgument, "weight");
  expect_error(affine(q.weight, mx::zeros({40, 3}), 4, 32), kArgument, "scales");
  expect_error(affine(q.weight, q.weight, 4, 32), kArgument, "scales");
  expect_error([&] { LinearWeight::dense(*context, q.weight); }, kArgument, "weight");
  expect_error(
      [&] {
        LinearWeight::dense(*context, mx::zeros({0, 4}));
      },
      kArgument,
      "must not be empty");
  expect_error([&] { q.prepare(*context, mx::zeros({39})); }, kArgument, "bias");
  const LinearWeight weight = q.prepare(*context);
  expect_error([&] { linear(*context, mx::zeros({2, 63}), weight); }, kArgument, "x");
  expect_error([&] { linear(*context, mx::zeros({2, 64}, mx::float16), weight); }, kArgument, "x");
}

}  // namespace
}  // namespace sluice::kernels
