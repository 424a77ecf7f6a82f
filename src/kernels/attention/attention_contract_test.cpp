// Bitwise equality of every two ways to the same output (design rule 1).
#include <cmath>

#include "kernels/attention/attention_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder

class ContractAttention : public ::testing::TestWithParam<HeadShape> {
 protected:
  const HeadShape shape_ = GetParam();
  const int width_ = shape_.heads * shape_.value_dim;

  // The values of tokens [first, first + count) of a whole sequence's output.
  std::vector<float> cut(const std::vector<float>& all, int first, int count) const {
    return {all.begin() + first * width_, all.begin() + (first + count) * width_};
  }
};

// 560 tokens: more than two tiles.
TEST_P(ContractAttention, AnyChunkingEqualsTokenByToken) {
  constexpr int kLength = 560;
  auto context = make_context();
  Sequence sequence(kLength, shape_, 1);
  const auto expected =
      World(shape_, {&sequence}).run_chunks(*context, sequence, std::vector<int>(kLength, 1));
  EXPECT_TRUE(
      same_bits(World(shape_, {&sequence}).run_chunks(*context, sequence, {kLength}), expected));
  std::mt19937 generator(7);
  for (int trial = 0; trial < 6; ++trial) {
    std::vector<int> chunks;
    for (int left = kLength; left > 0; left -= chunks.back()) {
      const int most = trial % 2 == 0 ? 9 : 300;
      chunks.push_back(std::min<int>(left, 1 + generator() % most));
    }
    World world(shape_, {&sequence}, /*page_seed=*/trial);
    ASSERT_TRUE(same_bits(world.run_chunks(*context, sequence, chunks), expected));
  }
}

TEST_P(ContractAttention, AnyNeighboursEqualAlone) {
  auto context = make_context();
  Sequence a(300, shape_, 1), b(131, shape_, 2), c(64, shape_, 3);
  const std::vector<Sequence*> all = {&a, &b, &c};
  std::vector<std::vector<float>> alone;
  for (const Sequence* s : all) {
    alone.push_back(World(shape_, all).run_chunks(*context, *s, {s->length}));
  }
  World world(shape_, all);
  auto run = [&](const std::vector<Part>& parts) {
    const auto results = world.run(context.get(), parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto which = std::find(all.begin(), all.end(), parts[i].sequence) - all.begin();
      EXPECT_TRUE(same_bits(results[i], cut(alone[which], parts[i].first, parts[i].count)));
    }
  };
  run({{&a, 0, 257}, {&b, 0, 1}});
  run({{&b, 1, 127}, {&a, 257, 1}, {&c, 0, 63}});
  run({{&a, 258, 42}, {&c, 63, 1}, {&b, 128, 3}});
}

// One thread never cuts a long row into tiles, five threads do.
TEST_P(ContractAttention, ThreadsVariantsPagesAndStridesAreEqual) {
  Sequence sequence(521, shape_, 1), other(40, shape_, 2);
  const std::vector<Sequence*> all = {&sequence, &other};
  auto run = [&](const Context& context, uint32_t page_seed, Layout layout) {
    World world(shape_, all, page_seed);
    world.run(&context, {{&sequence, 0, 511}}, layout);
    auto result = world.run(&context, {{&sequence, 511, 1}}, layout)[0];
    for (const auto& part : world.run(&context, {{&other, 0, 40}, {&sequence, 512, 9}}, layout)) {
      result.insert(result.end(), part.begin(), part.end());
    }
    return result;
  };
  const auto expected = run(*make_context(1), 1, Layout::kDense);
  for (int threads : {2, 5}) {
    EXPECT_TRUE(same_bits(run(*make_context(threads), 1, Layout::kDense), expected)) << threads;
  }
  for (Isa isa : supported_isas()) {
    EXPECT_TRUE(same_bits(run(*make_context(3, isa), 1, Layout::kDense), expected))
        << isa_name(isa);
  }
  for (uint32_t seed : {2, 3}) {
    EXPECT_TRUE(same_bits(run(*make_context(2), seed, Layout::kDense), expected));
  }
  EXPECT_TRUE(same_bits(run(*make_context(2), 1, Layout::kFused), expected));
  EXPECT_TRUE(same_bits(run(*make_context(2), 1, Layout::kStrided), expected));
}

// What later tokens hold must not matter, not even NaN.
TEST_P(ContractAttention, LaterTokensOfThePassDoNotMatter) {
  auto context = make_context();
  for (int length : {2, 65, 270}) {
    Sequence sequence(length, shape_, 1);
    const auto expected =
        World(shape_, {&sequence}).run(context.get(), {{&sequence, 0, length}})[0];
    for (auto* values : {&sequence.k, &sequence.v}) {
      const size_t per_token = values->size() / length;
      std::fill(values->end() - per_token, values->end(), NAN);
    }
    const auto poisoned =
        World(shape_, {&sequence}).run(context.get(), {{&sequence, 0, length}})[0];
    EXPECT_TRUE(same_bits(cut(poisoned, 0, length - 1), cut(expected, 0, length - 1)));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         ContractAttention,
                         ::testing::Values(HeadShape{1, 1, 16, 16},
                                           HeadShape{3, 1, 64, 64},
                                           HeadShape{8, 2, 16, 80},
                                           HeadShape{5, 5, 20, 7},
                                           HeadShape{7, 1, 8, 256},
                                           HeadShape{13, 1, 4, 512}),
                         [](const auto& info) {
                           const HeadShape& s = info.param;
                           return fmt::format(
                               "q{}kv{}k{}v{}", s.heads, s.kv_heads, s.key_dim, s.value_dim);
                         });

}  // namespace
}  // namespace sluice::kernels
