#define SLUICE_ISA_GENERIC
#include "kernels/gated_delta/gated_delta-inl.h"

namespace sluice::kernels {

extern const GatedDeltaKernels gated_delta_kernels_generic;
const GatedDeltaKernels gated_delta_kernels_generic = {run};

}  // namespace sluice::kernels
