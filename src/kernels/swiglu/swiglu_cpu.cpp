#include "kernels/binary_rows.h"
#include "kernels/simd/isa_tables.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/swiglu/swiglu_kernels.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(SwigluKernels, swiglu_kernels)

mx::array swiglu_cpu(const Context& context, const mx::array& gate, const mx::array& up) {
  return binary_rows(context, Op::kSwiglu, gate, up, swiglu_kernels(context.isa()).apply);
}

}  // namespace sluice::kernels
