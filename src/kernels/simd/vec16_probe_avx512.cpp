#define SLUICE_ISA_AVX512
#include "kernels/simd/vec16_probe-inl.h"

namespace sluice::kernels {

extern const Vec16Probe vec16_probe_avx512;
const Vec16Probe vec16_probe_avx512 = SLUICE_VEC16_PROBE;

}  // namespace sluice::kernels
