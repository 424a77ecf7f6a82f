#include "kernels/delta_gates/delta_gates.h"

#include "tensor/checks.h"

namespace sluice::kernels {
namespace {

// Both gates as one float32 array, for check mode.
mx::array joined(const DeltaGates& gates) {
  return mx::stack({gates.g, mx::astype(gates.beta, mx::float32)}, 0);
}

}  // namespace

DeltaGates delta_gates(const Context& context,
                       const mx::array& a,
                       const mx::array& b,
                       const mx::array& a_log,
                       const mx::array& dt_bias) {
  constexpr const char* kOp = "delta_gates";
  tensor::require_dtype(kOp, "a", a, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_dtype(kOp, "b", b, {a.dtype()});
  tensor::require_dtype(kOp, "a_log", a_log, {mx::float32});
  tensor::require_dtype(kOp, "dt_bias", dt_bias, {a.dtype()});
  tensor::require_shape(kOp, "a", a, {tensor::kAnyDim, tensor::kAnyDim});
  tensor::require_shape(kOp, "b", b, a.shape());
  tensor::require_shape(kOp, "a_log", a_log, {a.shape(1)});
  tensor::require_shape(kOp, "dt_bias", dt_bias, {a.shape(1)});
  if (context.reference()) return delta_gates_reference(a, b, a_log, dt_bias);
  auto own = delta_gates_cpu(context, a, b, a_log, dt_bias);
  if (context.check()) {
    auto reference = delta_gates_reference(a, b, a_log, dt_bias);
    context.compare(Op::kDeltaGates, joined(own), joined(reference));
  }
  return own;
}

}  // namespace sluice::kernels
