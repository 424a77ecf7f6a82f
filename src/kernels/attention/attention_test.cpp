#include "kernels/attention/attention.h"

#include <gmock/gmock.h>

#include <fstream>

#include "kernels/attention/attention_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

class AttentionShapes : public ::testing::TestWithParam<HeadShape> {
 protected:
  // Both results of one part against the model; the reference errs within the same bound.
  void expect_close(const Part& part,
                    const std::vector<float>& own,
                    const std::vector<float>& reference,
                    float scale) {
    const HeadShape& shape = GetParam();
    const size_t width = size_t(shape.heads) * shape.value_dim;
    ASSERT_EQ(own.size(), part.count * width);
    ASSERT_EQ(reference.size(), own.size());
    for (int t = 0; t < part.count; ++t) {
      // The model costs more than the kernels: tokens at the ends of the part and of pages.
      const int slot = (part.first + t) % kPageSize;
      const bool at_edge = t < 2 || t >= part.count - 2 || slot == 0 || slot == kPageSize - 1;
      if (!at_edge && t % 8 != 5) continue;
      const Modelled expected = model(*part.sequence, shape, part.first + t, scale);
      for (size_t i = 0; i < width; ++i) {
        ASSERT_NEAR(own[t * width + i], expected.out[i], expected.bound)
            << "token " << t << " of " << part.count << " from " << part.first << ", value " << i;
        ASSERT_NEAR(own[t * width + i], reference[t * width + i], 2 * expected.bound);
      }
    }
  }
};

// Prefill of a prefix, then a chunk that starts at and around the ends of pages and tiles.
TEST_P(AttentionShapes, ChunksMatchModelAndReference) {
  const HeadShape shape = GetParam();
  auto context = make_context();
  int64_t runs = 0;
  for (int count : {1, 2, 63, 64, 65, 200}) {
    for (int first : {0, 1, 63, 64, 65, 127, 128}) {
      Sequence sequence(first + count, shape, first * 1000 + count);
      World own_world(shape, {&sequence}), reference_world(shape, {&sequence});
      if (first > 0) {
        own_world.run(context.get(), {{&sequence, 0, first}});
        reference_world.run(nullptr, {{&sequence, 0, first}});
        ++runs;
      }
      const Part part{&sequence, first, count};
      const auto own = own_world.run(context.get(), {part});
      const auto reference = reference_world.run(nullptr, {part});
      ++runs;
      expect_close(part, own[0], reference[0], own_world.scale());
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(context->kernel_runs(Op::kAttention), runs);
}

TEST_P(AttentionShapes, MixedRowsMatchModelAndReference) {
  const HeadShape shape = GetParam();
  auto context = make_context();
  Sequence decode(301, shape, 1), verify(70, shape, 2), prefill(90, shape, 3), fresh(1, shape, 4);
  const std::vector<Sequence*> all = {&decode, &verify, &prefill, &fresh};
  World own_world(shape, all), reference_world(shape, all);
  const std::vector<Part> before = {{&verify, 0, 66}, {&decode, 0, 300}, {&prefill, 0, 5}};
  const std::vector<Part> parts = {
      {&decode, 300, 1}, {&verify, 66, 4}, {&prefill, 5, 85}, {&fresh, 0, 1}};
  own_world.run(context.get(), before);
  reference_world.run(nullptr, before);
  const auto own = own_world.run(context.get(), parts);
  const auto reference = reference_world.run(nullptr, parts);
  for (size_t i = 0; i < parts.size(); ++i) {
    expect_close(parts[i], own[i], reference[i], own_world.scale());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         AttentionShapes,
                         ::testing::Values(HeadShape{1, 1, 16, 16},
                                           HeadShape{3, 1, 64, 64},
                                           HeadShape{4, 4, 64, 64},
                                           HeadShape{8, 2, 80, 80},
                                           HeadShape{4, 1, 128, 64},
                                           HeadShape{2, 2, 256, 256},
                                           HeadShape{3, 1, 20, 37},
                                           HeadShape{64, 1, 16, 8},
                                           HeadShape{1, 1, 512, 16},
                                           HeadShape{1, 1, 3, 500}),
                         [](const auto& info) {
                           const HeadShape& s = info.param;
                           return fmt::format(
                               "q{}kv{}k{}v{}", s.heads, s.kv_heads, s.key_dim, s.value_dim);
                         });

// Differences of scores far beyond what exp can hold, in both directions: the largest takes all.
TEST(Attention, LargeScores) {
  const HeadShape shape{3, 1, 64, 64};
  auto context = make_context();
  Sequence sequence(600, shape, 1, /*scale=*/3e5f);
  World world(shape, {&sequence});
  const auto own = world.run(context.get(), {{&sequence, 0, 600}})[0];
  for (int position : {0, 1, 255, 256, 599}) {
    const Modelled expected = model(sequence, shape, position, world.scale());
    for (size_t i = 0; i < expected.out.size(); ++i) {
      ASSERT_NEAR(own[position * expected.out.size() + i], expected.out[i], 1e-5);
    }
  }
  for (float value : own) ASSERT_TRUE(std::isfinite(value));
}

TEST(Attention, CheckModeRecordsTheErrorAndKeepsTheStorage) {
  const HeadShape shape{6, 2, 32, 32};
  auto context = make_check_context();
  auto plain = make_context();
  Sequence sequence(150, shape, 1);
  World checked(shape, {&sequence}), unchecked(shape, {&sequence});
  const std::vector<int> chunks = {70, 1, 60, 19};
  EXPECT_TRUE(same_bits(checked.run_chunks(*context, sequence, chunks),
                        unchecked.run_chunks(*plain, sequence, chunks)));
  const auto record = context->check_records().at(Op::kAttention);
  EXPECT_EQ(record.calls, 4);
  EXPECT_EQ(context->kernel_runs(Op::kAttention), 4);
  EXPECT_GT(record.max_reference, 0.5);
  EXPECT_LT(record.max_abs_error, 1e-5);
}

TEST(Attention, ReferenceModeRunsNoKernel) {
  const HeadShape shape{2, 1, 16, 16};
  auto context = make_reference_context();
  Sequence sequence(5, shape, 1);
  World(shape, {&sequence}).run(context.get(), {{&sequence, 0, 5}});
  EXPECT_EQ(context->kernel_runs(Op::kAttention), 0);
}

TEST(Attention, StorageIsNotTouchedWhenAllocated) {
  auto resident_pages = [] {
    long size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident;
  };
  const long before = resident_pages();
  auto storage = AttentionStorage::allocate(8192, 4, 64, 64, mx::float32);  // 1 GiB
  EXPECT_EQ(storage.num_pages(), 8192);
  EXPECT_EQ(storage.keys.shape(), (mx::Shape{8192, 4, 64, 64}));
  EXPECT_LT(resident_pages() - before, 64 * 256);  // 64 MiB
}

class AttentionErrors : public ::testing::Test {
 protected:
  std::string call(const std::vector<AttentionRow>& rows) {
    return thrown_message([&] { attention(*context_, q_, k_, v_, storage_, rows, {}); });
  }

  std::unique_ptr<Context> context_ = make_context();
  AttentionStorage storage_ = AttentionStorage::allocate(4, 2, 16, 8, mx::float32);
  mx::array q_ = mx::ones({3, 4, 16}), k_ = mx::ones({3, 2, 16}), v_ = mx::ones({3, 2, 8});
};

TEST_F(AttentionErrors, NameTheRow) {
  EXPECT_EQ(call({{{0, 2, 0}, {0}}, {{2, 1, 64}, {1, 2}}}), "");
  EXPECT_THAT(call({{{0, 2, 0}, {0}}}), HasSubstr("cover 2 tokens, but q has 3"));
  EXPECT_THAT(call({{{0, 2, 0}, {0}}, {{1, 1, 0}, {1}}}), HasSubstr("row 1"));
  EXPECT_THAT(call({{{0, 3, -1}, {0}}}), HasSubstr("position -1"));
  EXPECT_THAT(call({{{0, 3, 62}, {0}}}), HasSubstr("row 0 has 1 pages; its 65 positions need 2"));
  EXPECT_THAT(call({{{0, 3, 0}, {4}}}),
              HasSubstr("row 0 has page 4; the storage has pages 0 to 3"));
  EXPECT_THAT(call({{{0, 2, 0}, {3}}, {{2, 1, 5}, {3}}}), HasSubstr("page 3 would be written"));
  // Reading a shared page is fine.
  EXPECT_EQ(call({{{0, 2, 64}, {3, 0}}, {{2, 1, 64}, {3, 1}}}), "");
}

TEST_F(AttentionErrors, NameTheInput) {
  const std::vector<AttentionRow> rows = {{{0, 3, 0}, {0}}};
  auto with = [&](mx::array& input, const mx::array& value) {
    const mx::array kept = input;
    input = value;
    const std::string message = call(rows);
    input = kept;
    return message;
  };
  EXPECT_THAT(with(q_, mx::ones({3, 64})), HasSubstr("q has shape [3, 64]"));
  EXPECT_THAT(with(q_, mx::ones({3, 3, 16})), HasSubstr("multiple"));
  EXPECT_THAT(with(k_, mx::ones({2, 2, 16})), HasSubstr("k has shape [2, 2, 16]"));
  EXPECT_THAT(with(v_, mx::ones({3, 1, 8})), HasSubstr("v has shape"));
  EXPECT_THAT(with(v_, mx::ones({3, 2, 9})), HasSubstr("storage.values has shape"));
  EXPECT_THAT(with(q_, mx::ones({3, 4, 16}, mx::float16)), HasSubstr("q has dtype float16"));
  EXPECT_THAT(with(k_, mx::ones({3, 2, 16}, mx::int32)), HasSubstr("dtype int32"));
  EXPECT_THAT(thrown_message([] { AttentionStorage::allocate(0, 1, 1, 1, mx::float32); }),
              HasSubstr("all must be positive"));
}

}  // namespace
}  // namespace sluice::kernels
