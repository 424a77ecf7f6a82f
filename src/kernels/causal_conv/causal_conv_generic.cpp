#define SLUICE_ISA_GENERIC
#include "kernels/causal_conv/causal_conv-inl.h"

namespace sluice::kernels {

extern const CausalConvKernels causal_conv_kernels_generic;
const CausalConvKernels causal_conv_kernels_generic = {run};

}  // namespace sluice::kernels
