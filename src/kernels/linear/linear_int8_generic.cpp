#define SLUICE_ISA_GENERIC
#include "kernels/linear/linear_int8-inl.h"

namespace sluice::kernels {

extern const LinearKernels linear_int8_kernels_generic;
const LinearKernels linear_int8_kernels_generic = {kMaxTileRows, prepare, multiply};

}  // namespace sluice::kernels
