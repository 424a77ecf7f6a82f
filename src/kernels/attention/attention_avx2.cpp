#define SLUICE_ISA_AVX2
#include "kernels/attention/attention-inl.h"

namespace sluice::kernels {

extern const AttentionKernels attention_kernels_avx2;
const AttentionKernels attention_kernels_avx2 = {attend, attend_tile, merge_tiles};

}  // namespace sluice::kernels
