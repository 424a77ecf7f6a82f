#define SLUICE_ISA_AVX2
#include "kernels/delta_gates/delta_gates-inl.h"

namespace sluice::kernels {

extern const DeltaGatesKernels delta_gates_kernels_avx2;
const DeltaGatesKernels delta_gates_kernels_avx2 = {apply};

}  // namespace sluice::kernels
