#include "kernels/gated_rms_norm/gated_rms_norm.h"

#include <gmock/gmock.h>

#include "kernels/kernel_test_util.h"
#include "kernels/rms_norm/rms_norm.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

constexpr float kEps = 1e-6f;

TEST(GatedRmsNorm, MatchesModelAndReference) {
  auto context = make_context();
  for (int width : {1, 15, 16, 20, 64, 128, 300}) {
    const int rows = 21;
    const auto x = normal_values(size_t(rows) * width, 1, 3.0f);
    const auto z = normal_values(size_t(rows) * width, 2, 4.0f);
    const auto w = normal_values(width, 3);
    auto xs = to_array(x, {3, 7, width}), zs = to_array(z, {3, 7, width});
    auto ws = to_array(w, {width});
    const auto own = to_values(gated_rms_norm(*context, xs, zs, ws, kEps));
    const auto reference = to_values(gated_rms_norm_reference(xs, zs, ws, kEps));
    for (int r = 0; r < rows; ++r) {
      double squares = 0;
      for (int i = 0; i < width; ++i) squares += double(x[r * width + i]) * x[r * width + i];
      const double inverse = 1 / std::sqrt(squares / width + kEps);
      for (int i = 0; i < width; ++i) {
        const double gate = z[r * width + i];
        const double expected = gate / (1 + std::exp(-gate)) * x[r * width + i] * inverse * w[i];
        ASSERT_NEAR(own[r * width + i], expected, 24 * kUnit * std::abs(expected) + 1e-37);
        ASSERT_NEAR(reference[r * width + i], expected, 64 * kUnit * std::abs(expected) + 1e-37);
      }
    }
  }
  EXPECT_EQ(context->kernel_runs(Op::kGatedRmsNorm), 7);
}

TEST(GatedRmsNorm, HalfPrecisionGatesInFloat32) {
  auto x = mx::astype(to_array(normal_values(64, 1), {2, 32}), mx::bfloat16);
  auto w = mx::ones({32}, mx::bfloat16);
  auto y = gated_rms_norm(*make_reference_context(), x, x, w, kEps);
  EXPECT_EQ(y.dtype(), mx::bfloat16);
}

TEST(GatedRmsNorm, RejectsWrongInputs) {
  auto context = make_context();
  auto call = [&](const mx::array& x, const mx::array& z, const mx::array& w) {
    return thrown_message([&] { gated_rms_norm(*context, x, z, w, kEps); });
  };
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 7}), mx::ones({8})), HasSubstr("must be equal"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 8}), mx::ones({7})),
              HasSubstr("weight has shape"));
  EXPECT_THAT(call(mx::ones({2, 8}), mx::ones({2, 8}, mx::float16), mx::ones({8})),
              HasSubstr("z has dtype"));
}

TEST(ContractGatedRmsNorm, RowsThreadsVariantsAndStridesMoveNoBit) {
  auto x = to_array(normal_values(90 * 72, 1), {10, 9, 72});
  auto z = to_array(normal_values(90 * 72, 2, 9.0f), {10, 9, 72});
  auto w = to_array(normal_values(72, 3), {72});
  std::vector<float> first;
  for (Isa isa : supported_isas()) {
    for (int threads : {1, 2, 5}) {
      const auto y = to_values(gated_rms_norm(*make_context(threads, isa), x, z, w, kEps));
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(y, first)) << isa_name(isa) << ", " << threads;
    }
  }
  auto context = make_context();
  EXPECT_TRUE(
      same_bits(to_values(gated_rms_norm(*context, strided(x), strided(z), w, kEps)), first));
  auto row = [](const mx::array& a) { return mx::slice(a, {4, 3, 0}, {5, 4, 72}); };
  const auto alone = to_values(gated_rms_norm(*context, row(x), row(z), w, kEps));
  const auto begin = first.begin() + (4 * 9 + 3) * 72;
  EXPECT_TRUE(same_bits(alone, {begin, begin + 72}));
}

// A gate so large that its sigmoid is 1 leaves gate times the plain norm.
TEST(GatedRmsNorm, TheNormIsThatOfRmsNorm) {
  auto context = make_context();
  auto x = to_array(normal_values(5 * 70, 1), {5, 70});
  auto w = to_array(normal_values(70, 3), {70});
  auto z = mx::full({5, 70}, 64.0f, mx::float32);
  auto plain = mx::multiply(rms_norm(*context, x, w, kEps), mx::array(64.0f));
  EXPECT_TRUE(same_bits(to_values(gated_rms_norm(*context, x, z, w, kEps)), to_values(plain)));
}

}  // namespace
}  // namespace sluice::kernels
