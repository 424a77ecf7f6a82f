#define SLUICE_ISA_AVX2
#include "kernels/causal_conv/causal_conv-inl.h"

namespace sluice::kernels {

extern const CausalConvKernels causal_conv_kernels_avx2;
const CausalConvKernels causal_conv_kernels_avx2 = {run};

}  // namespace sluice::kernels
