#include "sampling/philox.h"

#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

struct KnownAnswer {
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter answer;
};

// The philox4x32-10 lines of Random123's kat_vectors.
constexpr KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesThePublishedAnswers) {
  for (const auto& known : kKnownAnswers) {
    EXPECT_EQ(philox_4x32_10(known.counter, known.key), known.answer);
  }
}

TEST(Philox, LanesEqualSingleBlocks) {
  const PhiloxCounter first = {41, 2, 3, 4};
  const PhiloxKey key = {5, 6};
  uint32_t words[4][16];
  philox_4x32_10<16>(first, key, words);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    const auto single = philox_4x32_10({first[0] + lane, 2, 3, 4}, key);
    for (int w = 0; w < 4; ++w) EXPECT_EQ(words[w][lane], single[w]);
  }
}

}  // namespace
}  // namespace sluice::sampling
