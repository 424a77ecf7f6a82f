#define SLUICE_ISA_GENERIC
#include "kernels/rms_norm/rms_norm-inl.h"

namespace sluice::kernels {

extern const RmsNormKernels rms_norm_kernels_generic;
const RmsNormKernels rms_norm_kernels_generic = {normalize};

}  // namespace sluice::kernels
