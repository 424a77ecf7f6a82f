#include "kernels/gated_rms_norm/gated_rms_norm.h"

namespace sluice::kernels {

mx::array gated_rms_norm_reference(const mx::array& x,
                                   const mx::array& z,
                                   const mx::array& weight,
                                   float eps) {
  const auto normed = mx::fast::rms_norm(x, weight, eps);
  const auto gate = mx::astype(z, mx::float32);
  const auto silu = mx::multiply(gate, mx::sigmoid(gate));
  return mx::astype(mx::multiply(silu, mx::astype(normed, mx::float32)), x.dtype());
}

}  // namespace sluice::kernels
