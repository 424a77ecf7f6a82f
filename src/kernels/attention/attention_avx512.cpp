#define SLUICE_ISA_AVX512
#include "kernels/attention/attention-inl.h"

namespace sluice::kernels {

extern const AttentionKernels attention_kernels_avx512;
const AttentionKernels attention_kernels_avx512 = {attend, attend_tile, merge_tiles};

}  // namespace sluice::kernels
