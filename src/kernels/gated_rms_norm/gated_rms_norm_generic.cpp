#define SLUICE_ISA_GENERIC
#include "kernels/gated_rms_norm/gated_rms_norm-inl.h"

namespace sluice::kernels {

extern const GatedRmsNormKernels gated_rms_norm_kernels_generic;
const GatedRmsNormKernels gated_rms_norm_kernels_generic = {normalize_and_gate};

}  // namespace sluice::kernels
