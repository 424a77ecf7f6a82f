// For vec16_test.cpp only: the vector's operations over arrays, one table per variant. Every
// function handles `count` values, a multiple of 16.
#pragma once

#include <stdint.h>

namespace sluice::kernels {

struct Vec16Probe {
  void (*exp)(const float* x, float* y, int count);
  void (*from_f16)(const uint16_t* x, float* y, int count);
  void (*to_f16)(const float* x, uint16_t* y, int count);
  void (*from_bf16)(const uint16_t* x, float* y, int count);
  void (*to_bf16)(const float* x, uint16_t* y, int count);
  void (*from_u8)(const uint8_t* x, float* y, int count);
  // The low byte of each float's bits.
  void (*low_bytes)(const float* x, uint8_t* y, int count);
  // y[i] = a mix of every arithmetic operation of x[i] and x[count - 1 - i].
  void (*arithmetic)(const float* x, float* y, int count);
  // y[2 j], y[2 j + 1] = sum and largest of vector j.
  void (*reduce)(const float* x, float* y, int count);
  // Copies the first n of 16 values and reads none beyond; the other lanes arrive as zero in all.
  void (*first)(const float* x, float* y, float* all, int n);
};

}  // namespace sluice::kernels
