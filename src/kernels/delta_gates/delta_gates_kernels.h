// The function table of the own CPU kernel, in plain types: included by the translation units of
// single instruction set variants (see simd/vec16-inl.h for what those may include).
#pragma once

#include <stdint.h>

namespace sluice::kernels {

struct DeltaGatesKernels {
  // One token's heads: g[h] = exp(-exp(a_log[h]) softplus(a[h] + dt_bias[h])), beta[h] =
  // sigmoid(b[h]).
  void (*apply)(const float* a,
                const float* b,
                const float* a_log,
                const float* dt_bias,
                int heads,
                float* g,
                float* beta);
};

}  // namespace sluice::kernels
