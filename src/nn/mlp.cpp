#include "nn/mlp.h"

#include "kernels/swiglu/swiglu.h"

namespace sluice::nn {

mx::array GatedMlp::forward(const kernels::Context& context, const mx::array& x) const {
  auto y =
      kernels::swiglu(context, kernels::linear(context, x, gate), kernels::linear(context, x, up));
  return kernels::linear(context, y, down);
}

}  // namespace sluice::nn
