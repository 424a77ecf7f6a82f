#define SLUICE_ISA_AVX2
#define SLUICE_ISA_VNNI
#include "kernels/linear/linear_int8-inl.h"

namespace sluice::kernels {

extern const LinearKernels linear_int8_kernels_avxvnni;
const LinearKernels linear_int8_kernels_avxvnni = {kMaxTileRows, prepare, multiply};

}  // namespace sluice::kernels
