// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include). The norm is
// that of rms_norm, bit for bit.
#pragma once

#include <stdint.h>

namespace sluice::kernels {

struct GatedRmsNormKernels {
  // y may be x or z.
  void (*apply)(
      const float* x, const float* z, const float* weight, int width, float eps, float* y);
};

}  // namespace sluice::kernels
