// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice::kernels {

inline constexpr int kMaxConvTaps = 16;

// Some channels of one row. The sum over taps is fma from 0, oldest input first.
struct ConvBlock {
  const float* x = nullptr;       // the first channel of token 0
  int64_t x_stride = 0;           // floats from one token to the next
  const float* weight = nullptr;  // [taps][weight_stride], the first channel
  int64_t weight_stride = 0;
  float* tail = nullptr;  // [taps - 1][tail_stride], the first channel
  int64_t tail_stride = 0;
  bool write_tail = false;
  const int32_t* tokens = nullptr;
  int count = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int taps = 0;      // 2 to kMaxConvTaps
  int channels = 0;  // of this block
};

struct CausalConvKernels {
  void (*run)(const ConvBlock& block);
};

}  // namespace sluice::kernels
