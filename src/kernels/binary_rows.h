// Own CPU kernels that compute y[i] from a[i] and b[i] alone (swiglu, sigmoid_gate): what they
// share around their arithmetic. Only the ops' *_cpu.cpp include it.
#pragma once

#include "kernels/context.h"

namespace sluice::kernels {

// y[i] = f(a[i], b[i]) for count values; y may be a or b.
using BinaryRowsFunction = void (*)(const float* a, const float* b, int64_t count, float* y);

// a, b: float32 of one shape, any strides -> float32 of that shape. Throws on another dtype.
mx::array binary_rows(const Context& context,
                      Op op,
                      const mx::array& a,
                      const mx::array& b,
                      BinaryRowsFunction function);

}  // namespace sluice::kernels
