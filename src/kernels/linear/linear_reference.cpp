#include "kernels/linear/linear.h"

namespace sluice::kernels {

// As mlx.nn.QuantizedLinear and mlx.nn.Linear compute it: the bias is added after the quantized
// product, but goes into addmm for a dense one.
mx::array linear_reference(const mx::array& x, const LinearWeight& w) {
  SLUICE_CHECK(w.weight().has_value(), "linear: the reference form of the weight was not kept");
  if (w.quantized()) {
    auto y = mx::quantized_matmul(x,
                                  *w.weight(),
                                  *w.scales(),
                                  w.biases(),
                                  /*transpose=*/true,
                                  w.group_size(),
                                  w.bits());
    return w.bias() ? mx::add(y, *w.bias()) : y;
  }
  auto transposed = mx::transpose(*w.weight());
  return w.bias() ? mx::addmm(*w.bias(), x, transposed) : mx::matmul(x, transposed);
}

}  // namespace sluice::kernels
