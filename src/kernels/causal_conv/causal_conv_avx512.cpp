#define SLUICE_ISA_AVX512
#include "kernels/causal_conv/causal_conv-inl.h"

namespace sluice::kernels {

extern const CausalConvKernels causal_conv_kernels_avx512;
const CausalConvKernels causal_conv_kernels_avx512 = {run};

}  // namespace sluice::kernels
