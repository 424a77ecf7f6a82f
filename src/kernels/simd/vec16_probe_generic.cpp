#define SLUICE_ISA_GENERIC
#include "kernels/simd/vec16_probe-inl.h"

namespace sluice::kernels {

extern const Vec16Probe vec16_probe_generic;
const Vec16Probe vec16_probe_generic = SLUICE_VEC16_PROBE;

}  // namespace sluice::kernels
