#define SLUICE_ISA_AVX2
#include "kernels/simd/vec16_probe-inl.h"

namespace sluice::kernels {

extern const Vec16Probe vec16_probe_avx2;
const Vec16Probe vec16_probe_avx2 = SLUICE_VEC16_PROBE;

}  // namespace sluice::kernels
