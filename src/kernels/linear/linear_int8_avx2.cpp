#define SLUICE_ISA_AVX2
#include "kernels/linear/linear_int8-inl.h"

namespace sluice::kernels {

extern const LinearKernels linear_int8_kernels_avx2;
const LinearKernels linear_int8_kernels_avx2 = {kMaxTileRows, prepare, multiply};

}  // namespace sluice::kernels
