#include "kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/linear/linear_cpu.h"

namespace sluice::kernels {
namespace {

std::unique_ptr<Context> make_context(Isa isa = best_isa(), int threads = 2) {
  ContextOptions options;
  options.isa = isa;
  options.threads = threads;
  return std::move(Context::create(options)).value();
}

mx::array random_array(mx::Shape shape, unsigned seed) {
  size_t size = 1;
  for (int dim : shape) size *= dim;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  for (float& value : values) value = normal(random);
  return mx::array(values.begin(), shape, mx::float32);
}

struct Quantized {
  mx::array weight, scales, biases;
  int bits, group_size;

  LinearWeight prepare(const Context& context,
                       const std::optional<mx::array>& bias = std::nullopt) const {
    return LinearWeight::affine(context, weight, scales, biases, bits, group_size, bias);
  }
};

Quantized quantize(int n, int k, int bits, int group_size, mx::Dtype scales = mx::float32) {
  auto parts = mx::quantize(random_array({n, k}, n * 31 + k), group_size, bits);
  return {parts[0], mx::astype(parts[1], scales), mx::astype(parts[2], scales), bits, group_size};
}

std::vector<float> values_of(const mx::array& x) {
  auto copy = mx::contiguous(mx::astype(x, mx::float32));
  copy.eval();
  return {copy.data<float>(), copy.data<float>() + copy.size()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// A weight in double: scale * q + bias read from MLX's layout bit by bit, with the magnitudes that
// the rounding errors of the kernel's order are proportional to.
struct ExactWeight {
  int n = 0, k = 0;
  int terms = 0;                         // roundings on the way of one product to the result
  std::vector<double> value, magnitude;  // [n, k]
};

ExactWeight exact(const Quantized& q) {
  auto words = mx::contiguous(q.weight);
  words.eval();
  const uint32_t* word = words.data<uint32_t>();
  const auto scales = values_of(q.scales), biases = values_of(q.biases);
  ExactWeight w;
  w.n = q.weight.shape(0);
  w.k = q.scales.shape(1) * q.group_size;
  w.terms = q.group_size + 2 * q.scales.shape(1) + 4;
  for (int row = 0; row < w.n; ++row) {
    for (int k = 0; k < w.k; ++k) {
      int value = 0;
      for (int b = 0; b < q.bits; ++b) {
        const int64_t bit = int64_t{k} * q.bits + b;
        value |= (word[row * q.weight.shape(1) + bit / 32] >> (bit % 32) & 1) << b;
      }
      const int group = (row * w.k + k) / q.group_size;
      const double scale = scales[group], bias = biases[group];
      w.value.push_back(scale * value + bias);
      w.magnitude.push_back(std::abs(scale) * value + std::abs(bias));
    }
  }
  return w;
}

ExactWeight exact_dense(const mx::array& weight) {
  ExactWeight w;
  w.n = weight.shape(0);
  w.k = weight.shape(1);
  w.terms = std::min(w.k, kDenseGroup) + w.k / kDenseGroup + 4;
  for (float value : values_of(weight)) {
    w.value.push_back(value);
    w.magnitude.push_back(std::abs(value));
  }
  return w;
}

// Each rounding is relative 2^-24 of a partial sum that sum(|w| |x|) bounds (Higham, Accuracy and
// Stability of Numerical Algorithms, section 3.1).
void expect_within_bound(const mx::array& y,
                         const mx::array& x,
                         const ExactWeight& w,
                         const std::vector<float>& bias = {}) {
  const auto result = values_of(y), input = values_of(x);
  const int rows = x.shape(0);
  ASSERT_EQ(y.shape(), (mx::Shape{rows, w.n}));
  const double unit = w.terms * 0x1p-24 / (1 - w.terms * 0x1p-24);
  for (int r = 0; r < rows; ++r) {
    for (int n = 0; n < w.n; ++n) {
      double sum = bias.empty() ? 0 : bias[n], magnitude = std::abs(sum);
      for (int k = 0; k < w.k; ++k) {
        sum += w.value[n * w.k + k] * input[r * w.k + k];
        magnitude += w.magnitude[n * w.k + k] * std::abs(input[r * w.k + k]);
      }
      ASSERT_NEAR(result[r * w.n + n], sum, unit * magnitude) << "row " << r << ", output " << n;
    }
  }
}

constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 33, 64};

class LinearFormats : public testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int bits() const { return std::get<0>(GetParam()); }
  int group() const { return std::get<1>(GetParam()); }
};
using ContractLinearFormats = LinearFormats;

const auto kAllFormats =
    testing::Combine(testing::Values(2, 3, 4, 5, 6, 8), testing::Values(32, 64, 128));
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
      alone.push_back(values_of(linear(*context, mx::slice(x, {r, 0}, {r + 1, 384}), weight)));
    }
    for (int m : kRowCounts) {
      const int first = 64 - m;  // so that a row meets several places in a tile
      const auto y = values_of(linear(*context, mx::slice(x, {first, 0}, {64, 384}), weight));
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
      auto context = make_context(isa, threads);
      return values_of(linear(*context, x, q.prepare(*context)));
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
  const auto together = values_of(linear(*context, x, weight));
  for (int r = 0; r < 70; ++r) {
    const auto alone = values_of(linear(*context, mx::slice(x, {r, 0}, {r + 1, 4096}), weight));
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
    const auto y = values_of(linear(*context, x, q.prepare(*context)));
    expect_within_bound(mx::array(y.begin(), {3, 40}, mx::float32), x, exact(q));
    const size_t narrow_bytes = q.prepare(*context).nbytes();
    q.scales = mx::astype(q.scales, mx::float32);
    q.biases = mx::astype(q.biases, mx::float32);
    EXPECT_TRUE(same_bits(values_of(linear(*context, x, q.prepare(*context))), y));
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
    auto one = make_context(Isa::kGeneric, 1);
    const auto expected = values_of(linear(*one, x, LinearWeight::dense(*one, w)));
    for (Isa isa : supported_isas()) {
      for (int threads : {1, 2, 5}) {
        auto context = make_context(isa, threads);
        const LinearWeight weight = LinearWeight::dense(*context, w);
        ASSERT_TRUE(same_bits(values_of(linear(*context, x, weight)), expected));
        for (int r : {0, 7, 32}) {
          const auto row = values_of(linear(*context, mx::slice(x, {r, 0}, {r + 1, 300}), weight));
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
  expect_within_bound(linear(*context, x, q.prepare(*context, bias)), x, exact(q), values_of(bias));
  const mx::array w = random_array({37, 64}, 7);
  expect_within_bound(linear(*context, x, LinearWeight::dense(*context, w, bias)),
                      x,
                      exact_dense(w),
                      values_of(bias));
}

TEST(ContractLinear, NonContiguousInputsGiveTheSameBits) {
  auto context = make_context();
  const LinearWeight weight = quantize(40, 64, 4, 32).prepare(*context);
  const mx::array x = random_array({64, 64}, 4);
  auto check = [&](const mx::array& view) {
    const auto flat = values_of(view);
    const mx::array copy(flat.begin(), view.shape(), mx::float32);
    EXPECT_TRUE(same_bits(values_of(linear(*context, view, weight)),
                          values_of(linear(*context, copy, weight))));
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
  std::vector<float> eager = values_of(lazy);
  for (int i = 0; i < 30; ++i) {
    lazy = mx::multiply(linear(*context, lazy, weight), mx::array(0.1f));
    const mx::array x(eager.begin(), {4, 64}, mx::float32);
    eager = values_of(mx::multiply(linear(*context, x, weight), mx::array(0.1f)));
  }
  EXPECT_TRUE(same_bits(values_of(lazy), eager));
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
  values_of(linear(*own, x, weight));
  values_of(linear(*own, x, weight));
  EXPECT_EQ(own->kernel_runs(Op::kLinear), 2);

  ContextOptions options;
  options.backend = Backend::kReference;
  auto reference = std::move(Context::create(options)).value();
  weight = q.prepare(*reference);
  EXPECT_EQ(weight.packed(), nullptr);
  EXPECT_EQ(weight.nbytes(), q.weight.nbytes() + q.scales.nbytes() + q.biases.nbytes());
  EXPECT_TRUE(
      same_bits(values_of(linear(*reference, x, weight)),
                values_of(mx::quantized_matmul(x, q.weight, q.scales, q.biases, true, 32, 4))));
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
