#include "kernels/delta_gates/delta_gates.h"

namespace sluice::kernels {

DeltaGates delta_gates_reference(const mx::array& a,
                                 const mx::array& b,
                                 const mx::array& a_log,
                                 const mx::array& dt_bias) {
  const auto x = mx::add(a, dt_bias);
  // mlx.nn.softplus.
  const auto softplus = mx::logaddexp(x, mx::array(0, x.dtype()));
  const auto rate = mx::negative(mx::exp(mx::astype(a_log, mx::float32)));
  return {mx::exp(mx::multiply(rate, softplus)), mx::sigmoid(b)};
}

}  // namespace sluice::kernels
