// Philox4x32-10: counter-based random numbers. Salmon, Moraes, Dror, Shaw: "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. A pure function of (counter, key), so any entry of any
// step can be drawn alone, in any order, on any device.
#pragma once

#include <array>
#include <cstdint>

namespace sluice::sampling {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Multipliers and key increments (golden ratio, sqrt(3) - 1) of the paper, table 2.
inline constexpr uint32_t kPhiloxM0 = 0xD2511F53, kPhiloxM1 = 0xCD9E8D57;
inline constexpr uint32_t kPhiloxW0 = 0x9E3779B9, kPhiloxW1 = 0xBB67AE85;

// Lanes independent blocks whose counters differ in word 0 only, at first, first + 1, ...;
// words[w][lane] is output word w of the block of that lane.
template <int Lanes>
[[gnu::always_inline]] inline void philox_4x32_10(const PhiloxCounter& first,
                                                  const PhiloxKey& key,
                                                  uint32_t (&words)[4][Lanes]) {
  // Word by word in arrays of its own, with products taken apart: the form that GCC vectorizes.
  uint32_t c0[Lanes], c1[Lanes], c2[Lanes], c3[Lanes];
  for (int lane = 0; lane < Lanes; ++lane) {
    c0[lane] = first[0] + static_cast<uint32_t>(lane);
    c1[lane] = first[1];
    c2[lane] = first[2];
    c3[lane] = first[3];
  }
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    uint32_t high0[Lanes], high1[Lanes];
    for (int lane = 0; lane < Lanes; ++lane) {
      high0[lane] = static_cast<uint32_t>((uint64_t{c0[lane]} * kPhiloxM0) >> 32);
    }
    for (int lane = 0; lane < Lanes; ++lane) {
      high1[lane] = static_cast<uint32_t>((uint64_t{c2[lane]} * kPhiloxM1) >> 32);
    }
    for (int lane = 0; lane < Lanes; ++lane) {
      const uint32_t low0 = c0[lane] * kPhiloxM0, low1 = c2[lane] * kPhiloxM1;
      c0[lane] = high1[lane] ^ c1[lane] ^ k0;
      c1[lane] = low1;
      c2[lane] = high0[lane] ^ c3[lane] ^ k1;
      c3[lane] = low0;
    }
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  for (int lane = 0; lane < Lanes; ++lane) {
    words[0][lane] = c0[lane];
    words[1][lane] = c1[lane];
    words[2][lane] = c2[lane];
    words[3][lane] = c3[lane];
  }
}

inline PhiloxCounter philox_4x32_10(const PhiloxCounter& counter, const PhiloxKey& key) {
  uint32_t words[4][1];
  philox_4x32_10<1>(counter, key, words);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

}  // namespace sluice::sampling
