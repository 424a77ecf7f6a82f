#include "kernels/swiglu/swiglu.h"

#include "tensor/checks.h"

namespace sluice::kernels {

mx::array swiglu(const Context& context, const mx::array& gate, const mx::array& up) {
  tensor::require_dtype("swiglu", "gate", gate, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_dtype("swiglu", "up", up, {gate.dtype()});
  if (gate.shape() != up.shape()) {
    throw_error(ErrorCode::kInvalidArgument,
                "[swiglu] gate has shape {} and up {}; they must be equal",
                tensor::shape_string(gate.shape()),
                tensor::shape_string(up.shape()));
  }
  return dispatch(
      context,
      Op::kSwiglu,
      [&] { return swiglu_cpu(context, gate, up); },
      [&] { return swiglu_reference(gate, up); });
}

}  // namespace sluice::kernels
