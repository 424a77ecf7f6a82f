#define SLUICE_ISA_AVX512
#include "kernels/gated_delta/gated_delta-inl.h"

namespace sluice::kernels {

extern const GatedDeltaKernels gated_delta_kernels_avx512;
const GatedDeltaKernels gated_delta_kernels_avx512 = {run};

}  // namespace sluice::kernels
