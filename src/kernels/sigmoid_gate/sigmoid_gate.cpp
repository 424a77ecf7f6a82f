#include "kernels/sigmoid_gate/sigmoid_gate.h"

#include "tensor/checks.h"

namespace sluice::kernels {

mx::array sigmoid_gate(const Context& context, const mx::array& x, const mx::array& gate) {
  tensor::require_dtype("sigmoid_gate", "x", x, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_dtype("sigmoid_gate", "gate", gate, {x.dtype()});
  // The trailing axes are compared from the last one on; missing ones count as 1.
  bool fits = gate.ndim() <= x.ndim();
  for (int axis = 1; fits && axis <= static_cast<int>(gate.ndim()); ++axis) {
    fits = gate.shape(-axis) == x.shape(-axis) || gate.shape(-axis) == 1;
  }
  if (!fits) {
    throw_error(ErrorCode::kInvalidArgument,
                "[sigmoid_gate] gate has shape {} and x {}; gate must broadcast to x",
                tensor::shape_string(gate.shape()),
                tensor::shape_string(x.shape()));
  }
  return dispatch(
      context,
      Op::kSigmoidGate,
      [&] { return sigmoid_gate_cpu(context, x, mx::broadcast_to(gate, x.shape())); },
      [&] { return sigmoid_gate_reference(x, gate); });
}

}  // namespace sluice::kernels
