#define SLUICE_ISA_GENERIC
#include "kernels/sigmoid_gate/sigmoid_gate-inl.h"

namespace sluice::kernels {

extern const SigmoidGateKernels sigmoid_gate_kernels_generic;
const SigmoidGateKernels sigmoid_gate_kernels_generic = {apply};

}  // namespace sluice::kernels
