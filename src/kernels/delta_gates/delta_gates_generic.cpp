#define SLUICE_ISA_GENERIC
#include "kernels/delta_gates/delta_gates-inl.h"

namespace sluice::kernels {

extern const DeltaGatesKernels delta_gates_kernels_generic;
const DeltaGatesKernels delta_gates_kernels_generic = {apply};

}  // namespace sluice::kernels
