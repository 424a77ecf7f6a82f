#define SLUICE_ISA_AVX2
#include "kernels/sigmoid_gate/sigmoid_gate-inl.h"

namespace sluice::kernels {

extern const SigmoidGateKernels sigmoid_gate_kernels_avx2;
const SigmoidGateKernels sigmoid_gate_kernels_avx2 = {apply};

}  // namespace sluice::kernels
