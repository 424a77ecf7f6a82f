#define SLUICE_ISA_AVX512
#define SLUICE_ISA_VNNI
#include "kernels/linear/linear_int8-inl.h"

namespace sluice::kernels {

extern const LinearKernels linear_int8_kernels_avx512vnni;
const LinearKernels linear_int8_kernels_avx512vnni = {kMaxTileRows, prepare, multiply};

}  // namespace sluice::kernels
