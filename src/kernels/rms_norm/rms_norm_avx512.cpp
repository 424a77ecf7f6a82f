#define SLUICE_ISA_AVX512
#include "kernels/rms_norm/rms_norm-inl.h"

namespace sluice::kernels {

extern const RmsNormKernels rms_norm_kernels_avx512;
const RmsNormKernels rms_norm_kernels_avx512 = {normalize};

}  // namespace sluice::kernels
