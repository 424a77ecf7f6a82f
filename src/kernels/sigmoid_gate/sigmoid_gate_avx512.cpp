#define SLUICE_ISA_AVX512
#include "kernels/sigmoid_gate/sigmoid_gate-inl.h"

namespace sluice::kernels {

extern const SigmoidGateKernels sigmoid_gate_kernels_avx512;
const SigmoidGateKernels sigmoid_gate_kernels_avx512 = {apply};

}  // namespace sluice::kernels
