#include "sampling/exact_math.h"

namespace sluice::sampling {

double exact_log(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)), then log m = 2 atanh(s) with s = (m - 1) / (m + 1),
  // |s| <= 0.1716: twelve terms of the series leave less than 1e-19.
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 0.0;
  for (int k = 25; k >= 3; k -= 2) series = (series + 1.0 / k) * z;
  const double log_m = 2.0 * s + 2.0 * s * series;
  // ln 2 in two parts, the first with 32 bits so that its product with the exponent is exact.
  return exponent * 6.93147180369123816490e-01 + (log_m + exponent * 1.90821492927058770002e-10);
}

}  // namespace sluice::sampling
