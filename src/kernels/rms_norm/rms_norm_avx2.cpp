#define SLUICE_ISA_AVX2
#include "kernels/rms_norm/rms_norm-inl.h"

namespace sluice::kernels {

extern const RmsNormKernels rms_norm_kernels_avx2;
const RmsNormKernels rms_norm_kernels_avx2 = {normalize};

}  // namespace sluice::kernels
