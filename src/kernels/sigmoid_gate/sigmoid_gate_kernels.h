// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
#pragma once

#include <stdint.h>

namespace sluice::kernels {

struct SigmoidGateKernels {
  // y[i] = x[i] / (1 + exp(-gate[i])). y may be x or gate.
  void (*apply)(const float* x, const float* gate, int64_t count, float* y);
};

}  // namespace sluice::kernels
