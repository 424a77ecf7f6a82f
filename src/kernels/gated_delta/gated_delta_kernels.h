// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
//
// A panel is 16 value rows of one head, the lanes; its state lies [Dk][16]. Order of the sums,
// which defines every bit: m and y add over k in two chains, even and odd, each by fma from 0
// ascending, then even + odd; the state is fma(k, d, g S) with g S rounded. Tokens are taken one
// after the other, so any cut of a row into calls gives the same bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace sluice::kernels {

inline constexpr int kDeltaPanelRows = 16;

// One panel over some tokens of one row. Strides are in floats, from one token to the next.
struct DeltaPanel {
  const float* state_in = nullptr;  // [dk][16]
  float* state_out = nullptr;       // the same, may be state_in; null: the state is not wanted
  float* tile = nullptr;            // scratch [dk][16]
  const int32_t* tokens = nullptr;
  int count = 0;
  const float* q = nullptr;  // of the panel's key head; null: no y
  int64_t q_stride = 0;
  const float* k = nullptr;
  int64_t k_stride = 0;
  const float* v = nullptr;  // the panel's first value row
  int64_t v_stride = 0;
  const float* g = nullptr;  // one value, or dk if vector_gate
  int64_t g_stride = 0;
  bool vector_gate = false;
  const float* beta = nullptr;
  int64_t beta_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  int dk = 0;     // even
  int lanes = 0;  // value rows of this panel, 1 to 16
};

struct GatedDeltaKernels {
  void (*run)(const DeltaPanel& panel);
};

}  // namespace sluice::kernels
