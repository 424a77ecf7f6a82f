#define SLUICE_ISA_AVX512
#include "kernels/gated_rms_norm/gated_rms_norm-inl.h"

namespace sluice::kernels {

extern const GatedRmsNormKernels gated_rms_norm_kernels_avx512;
const GatedRmsNormKernels gated_rms_norm_kernels_avx512 = {normalize_and_gate};

}  // namespace sluice::kernels
