#define SLUICE_ISA_AVX512
#include "kernels/linear/linear_int8-inl.h"

namespace sluice::kernels {

extern const LinearKernels linear_int8_kernels_avx512;
const LinearKernels linear_int8_kernels_avx512 = {kMaxTileRows, prepare, multiply};

}  // namespace sluice::kernels
