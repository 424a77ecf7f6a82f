#define SLUICE_ISA_AVX2
#include "kernels/gated_delta/gated_delta-inl.h"

namespace sluice::kernels {

extern const GatedDeltaKernels gated_delta_kernels_avx2;
const GatedDeltaKernels gated_delta_kernels_avx2 = {run};

}  // namespace sluice::kernels
