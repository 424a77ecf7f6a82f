#define SLUICE_ISA_GENERIC
#include "kernels/swiglu/swiglu-inl.h"

namespace sluice::kernels {

extern const SwigluKernels swiglu_kernels_generic;
const SwigluKernels swiglu_kernels_generic = {apply};

}  // namespace sluice::kernels
