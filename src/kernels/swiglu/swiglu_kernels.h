// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
#pragma once

#include <stdint.h>

namespace sluice::kernels {

struct SwigluKernels {
  // y[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. y may be gate or up.
  void (*apply)(const float* gate, const float* up, int64_t count, float* y);
};

}  // namespace sluice::kernels
