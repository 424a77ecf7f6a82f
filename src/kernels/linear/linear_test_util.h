// What the tests of linear share: random weights, their exact values, the bound of rounding errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernel_test_util.h"
#include "kernels/linear/linear.h"

namespace sluice::kernels::testing {

inline mx::array random_array(mx::Shape shape, unsigned seed) {
  size_t size = 1;
  for (int dim : shape) size *= dim;
  return to_array(normal_values(size, seed), std::move(shape));
}

struct Quantized {
  mx::array weight, scales, biases;
  int bits, group_size;

  LinearWeight prepare(const Context& context,
                       const std::optional<mx::array>& bias = std::nullopt,
                       Activations activations = Activations::kFloat32) const {
    return LinearWeight::affine(
        context, weight, scales, biases, bits, group_size, bias, activations);
  }
};

inline Quantized quantize(int n, int k, int bits, int group_size, mx::Dtype scales = mx::float32) {
  auto parts = mx::quantize(random_array({n, k}, n * 31 + k), group_size, bits);
  return {parts[0], mx::astype(parts[1], scales), mx::astype(parts[2], scales), bits, group_size};
}

// A weight in double: scale * q + bias read from MLX's layout bit by bit, with the magnitudes that
// the rounding errors of the kernel's order are proportional to.
struct ExactWeight {
  int n = 0, k = 0;
  int terms = 0;                         // roundings on the way of one product to the result
  std::vector<double> value, magnitude;  // [n, k]
};

inline ExactWeight exact(const Quantized& q) {
  auto words = mx::contiguous(q.weight);
  words.eval();
  const uint32_t* word = words.data<uint32_t>();
  const auto scales = to_values(q.scales), biases = to_values(q.biases);
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

inline ExactWeight exact_dense(const mx::array& weight) {
  ExactWeight w;
  w.n = weight.shape(0);
  w.k = weight.shape(1);
  w.terms = std::min(w.k, kDenseGroup) + w.k / kDenseGroup + 4;
  for (float value : to_values(weight)) {
    w.value.push_back(value);
    w.magnitude.push_back(std::abs(value));
  }
  return w;
}

// Each rounding is relative 2^-24 of a partial sum that sum(|w| |x|) bounds (Higham, Accuracy and
// Stability of Numerical Algorithms, section 3.1).
inline void expect_within_bound(const mx::array& y,
                                const mx::array& x,
                                const ExactWeight& w,
                                const std::vector<float>& bias = {}) {
  const auto result = to_values(y), input = to_values(x);
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

inline constexpr int kRowCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 33, 64};

}  // namespace sluice::kernels::testing
