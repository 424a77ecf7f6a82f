#include "kernels/swiglu/swiglu.h"

namespace sluice::kernels {

mx::array swiglu_reference(const mx::array& gate, const mx::array& up) {
  return mx::multiply(mx::multiply(gate, mx::sigmoid(gate)), up);
}

}  // namespace sluice::kernels
