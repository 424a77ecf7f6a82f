#define SLUICE_ISA_GENERIC
#include "kernels/attention/attention-inl.h"

namespace sluice::kernels {

extern const AttentionKernels attention_kernels_generic;
const AttentionKernels attention_kernels_generic = {attend, attend_tile, merge_tiles};

}  // namespace sluice::kernels
