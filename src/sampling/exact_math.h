// exp and log made of IEEE basic operations alone, so that every compiler (without contraction),
// instruction set and device gives the same bits. libm's own differ between its FMA variants.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::sampling {

// e^y for y <= 0 in float32, relative error below 2e-7; y below -87 counts as -87 (1.6e-38). A
// loop over it vectorizes. Cody-Waite reduction and the degree-5 polynomial of Cephes' expf.
[[gnu::always_inline]] inline float exp_nonpositive(float y) {
  y = y < -87.0f ? -87.0f : y;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low mantissa bits.
  const float shifted = y * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) - 0x4B400000u + 127u) << 23;
  return p * std::bit_cast<float>(exponent);
}

// Natural logarithm of a normal positive double, relative error below 1e-15.
double exact_log(double x);

}  // namespace sluice::sampling
