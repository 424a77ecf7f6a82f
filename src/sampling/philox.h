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
  for (int lane = 0; lane < Lanes; ++lane) {
    words[0][lane] = first[0] + static_cast<uint32_t>(lane);
    words[1][lane] = first[1];
    words[2][lane] = first[2];
    words[3][lane] = first[3];
  }
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    for (int lane = 0; lane < Lanes; ++lane) {
      const uint64_t p0 = uint64_t{words[0][lane]} * kPhiloxM0;
      const uint64_t p1 = uint64_t{words[2][lane]} * kPhiloxM1;
      words[0][lane] = static_cast<uint32_t>(p1 >> 32) ^ words[1][lane] ^ k0;
      words[1][lane] = static_cast<uint32_t>(p1);
      words[2][lane] = static_cast<uint32_t>(p0 >> 32) ^ words[3][lane] ^ k1;
      words[3][lane] = static_cast<uint32_t>(p0);
    }
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
}

inline PhiloxCounter philox_4x32_10(const PhiloxCounter& counter, const PhiloxKey& key) {
  uint32_t words[4][1];
  philox_4x32_10<1>(counter, key, words);
  return {words[0][0], words[1][0], words[2][0], words[3][0]};
}

}  // namespace sluice::sampling
