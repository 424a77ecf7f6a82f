#define SLUICE_ISA_AVX2
#include "kernels/swiglu/swiglu-inl.h"

namespace sluice::kernels {

extern const SwigluKernels swiglu_kernels_avx2;
const SwigluKernels swiglu_kernels_avx2 = {apply};

}  // namespace sluice::kernels
