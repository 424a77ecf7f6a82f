#include "sampling/exact_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "sampling/softmax_mass.h"

namespace sluice::sampling {
namespace {

TEST(ExactMath, ExpIsWithinTwoUlpOfTheTruth) {
  double worst = 0;
  for (int i = 0; i <= 87000; ++i) {
    const float y = -static_cast<float>(i) / 1000.0f;
    const double truth = std::exp(static_cast<double>(y));
    worst = std::max(worst, std::abs(exp_nonpositive(y) - truth) / truth);
  }
  EXPECT_LT(worst, 2e-7);
  EXPECT_EQ(exp_nonpositive(0.0f), 1.0f);
}

TEST(ExactMath, ExpOfVeryNegativeIsTinyAndNeverNan) {
  const float lowest = exp_nonpositive(-std::numeric_limits<float>::infinity());
  EXPECT_EQ(lowest, exp_nonpositive(-87.0f));
  EXPECT_EQ(exp_nonpositive(-1e30f), lowest);
  EXPECT_LT(lowest, 2e-38f);
}

TEST(ExactMath, LogIsExactToDouble) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-300, 300);
  double worst = 0;
  for (int i = 0; i < 100000; ++i) {
    const double x = std::pow(10.0, exponent(random));
    worst = std::max(worst, std::abs(exact_log(x) - std::log(x)) / std::abs(std::log(x)));
  }
  EXPECT_LT(worst, 1e-15);
}

TEST(ExactMath, LogKeepsItsRelativePrecisionBesideOne) {
  for (int bits = 1; bits <= 33; ++bits) {
    const double distance = std::ldexp(1.0, -bits);
    EXPECT_NEAR(exact_log(1 - distance) / std::log1p(-distance), 1.0, 1e-15) << bits;
    EXPECT_NEAR(exact_log(1 + distance) / std::log1p(distance), 1.0, 1e-15) << bits;
  }
  EXPECT_EQ(exact_log(1.0), 0.0);
}

TEST(SoftmaxMass, SumDoesNotDependOnOrderAndIsTheSoftmaxSum) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(-6, 4);
  std::vector<float> y(64 * 700);
  for (auto& value : y) value = std::min(normal(random), 0.0f);
  const uint64_t mass = total_mass(y);
  double truth = 0;
  for (float value : y) truth += std::exp(static_cast<double>(value));
  EXPECT_NEAR(log_of_mass(mass), std::log(truth), 1e-6);
  std::shuffle(y.begin(), y.end(), random);
  EXPECT_EQ(total_mass(y), mass);
}

TEST(SoftmaxMass, ForbiddenEntriesWeighNothing) {
  std::vector<float> y(kChunk, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(total_mass(y), 0u);
  y[5] = 0;
  EXPECT_EQ(log_of_mass(total_mass(y)), 0.0);
}

}  // namespace
}  // namespace sluice::sampling
