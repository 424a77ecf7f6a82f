// Seeded normal values for the micro-benchmarks.
#pragma once

#include <random>
#include <vector>

#include "tensor/mx.h"

namespace sluice::kernels {

// float32, evaluated; the same values in every run.
inline mx::array random_array(mx::Shape shape) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  size_t count = 1;
  for (int size : shape) count *= size;
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  mx::array result(values.begin(), shape, mx::float32);
  result.eval();
  return result;
}

}  // namespace sluice::kernels
