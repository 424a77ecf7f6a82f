// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
//
// Order of the sum, which defines every bit of the result: 16-lane block b of x adds its squares,
// by fma, to accumulator b mod 4 (the lanes beyond width are zero); then (a0 + a1) + (a2 + a3), and
// the lanes by the fixed tree. y = (x / sqrt(sum / width + eps)) * weight, the root inverted first.
#pragma once

namespace sluice::kernels {

struct RmsNormKernels {
  // One row: x, weight, y of width values. y may be x.
  void (*normalize)(const float* x, const float* weight, int width, float eps, float* y);
};

}  // namespace sluice::kernels
