#define SLUICE_ISA_AVX512
#include "kernels/swiglu/swiglu-inl.h"

namespace sluice::kernels {

extern const SwigluKernels swiglu_kernels_avx512;
const SwigluKernels swiglu_kernels_avx512 = {apply};

}  // namespace sluice::kernels
