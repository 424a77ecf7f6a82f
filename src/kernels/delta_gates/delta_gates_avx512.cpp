#define SLUICE_ISA_AVX512
#include "kernels/delta_gates/delta_gates-inl.h"

namespace sluice::kernels {

extern const DeltaGatesKernels delta_gates_kernels_avx512;
const DeltaGatesKernels delta_gates_kernels_avx512 = {apply};

}  // namespace sluice::kernels
