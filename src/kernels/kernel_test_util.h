// Helpers of the kernels' tests: contexts, random arrays, bitwise comparison.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/context.h"
#include "tensor/mx.h"

namespace sluice::kernels::testing {

inline constexpr double kUnit = 0x1p-24;  // unit roundoff of float32

inline std::unique_ptr<Context> make_context(const ContextOptions& options) {
  return std::move(Context::create(options)).value();
}

inline std::unique_ptr<Context> make_context(int threads = 2, std::optional<Isa> isa = {}) {
  ContextOptions options;
  options.threads = threads;
  options.isa = isa;
  return make_context(options);
}

inline std::unique_ptr<Context> make_check_context() {
  ContextOptions options;
  options.threads = 2;
  options.check = true;
  return make_context(options);
}

inline std::unique_ptr<Context> make_reference_context() {
  ContextOptions options;
  options.backend = Backend::kReference;
  return make_context(options);
}

inline std::vector<float> normal_values(size_t count, uint32_t seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

inline mx::array to_array(const std::vector<float>& values, mx::Shape shape) {
  return mx::array(values.begin(), std::move(shape), mx::float32);
}

// Evaluates x and copies it out in row-major order.
inline std::vector<float> to_values(const mx::array& x) {
  auto dense = mx::contiguous(mx::astype(x, mx::float32));
  dense.eval();
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

// x's values behind other strides: every second value along the last axis of a wider array.
inline mx::array strided(const mx::array& x) {
  auto pair = mx::stack({x, mx::full_like(x, NAN)}, -1);
  mx::Shape wide = x.shape();
  wide.back() *= 2;
  mx::Shape start(wide.size(), 0), step(wide.size(), 1);
  step.back() = 2;
  return mx::slice(mx::reshape(pair, wide), start, wide, step);
}

inline ::testing::AssertionResult same_bits(const std::vector<float>& a,
                                            const std::vector<float>& b) {
  if (a.size() != b.size()) {
    return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure() << "value " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// The message of the Exception that call throws; empty if it throws none.
template <class Call>
std::string thrown_message(Call&& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return exception.what();
  }
  return "";
}

}  // namespace sluice::kernels::testing
