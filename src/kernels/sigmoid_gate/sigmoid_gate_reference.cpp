#include "kernels/sigmoid_gate/sigmoid_gate.h"

namespace sluice::kernels {

mx::array sigmoid_gate_reference(const mx::array& x, const mx::array& gate) {
  return mx::multiply(x, mx::sigmoid(gate));
}

}  // namespace sluice::kernels
