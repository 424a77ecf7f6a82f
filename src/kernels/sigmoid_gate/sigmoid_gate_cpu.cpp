#include "kernels/binary_rows.h"
#include "kernels/sigmoid_gate/sigmoid_gate.h"
#include "kernels/sigmoid_gate/sigmoid_gate_kernels.h"
#include "kernels/simd/isa_tables.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(SigmoidGateKernels, sigmoid_gate_kernels)

mx::array sigmoid_gate_cpu(const Context& context, const mx::array& x, const mx::array& gate) {
  return binary_rows(context, Op::kSigmoidGate, x, gate, sigmoid_gate_kernels(context.isa()).apply);
}

}  // namespace sluice::kernels
