#include "kernels/embedding/embedding.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace sluice::kernels {
namespace {

std::unique_ptr<Context> make_context(Backend backend = Backend::kCpu) {
  ContextOptions options;
  options.backend = backend;
  options.threads = 2;
  return std::move(Context::create(options)).value();
}

mx::array random_table(int n, int k) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> values(size_t{1} * n * k);
  for (float& value : values) value = normal(random);
  return mx::array(values.begin(), {n, k}, mx::float32);
}

std::vector<float> values_of(const mx::array& x) {
  auto copy = mx::contiguous(mx::astype(x, mx::float32));
  copy.eval();
  return {copy.data<float>(), copy.data<float>() + copy.size()};
}

const std::vector<int32_t> kIds = {0, 16, 49, 15, 16, 17, 48, 0,  3,  33, 1,  2, 4,
                                   5, 6,  7,  8,  9,  10, 11, 12, 13, 14, 31, 32};

// float32 scales: one rounding per operation on both sides, so the bits are the same.
TEST(ContractEmbedding, QuantizedRowsEqualTheReferenceBitForBit) {
  auto own = make_context();
  auto reference = make_context(Backend::kReference);
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      auto q = mx::quantize(random_table(50, 256), group, bits);
      auto prepare = [&](const Context& context) {
        return LinearWeight::affine(context, q[0], q[1], q[2], bits, group);
      };
      const auto result = embedding(*own, kIds, prepare(*own));
      const auto expected = embedding(*reference, kIds, prepare(*reference));
      EXPECT_EQ(result.shape(), expected.shape());
      EXPECT_EQ(values_of(result), values_of(expected)) << bits << " bits, groups of " << group;
    }
  }
  EXPECT_EQ(own->kernel_runs(Op::kEmbedding), 18);
}

TEST(ContractEmbedding, DenseRowsAreTheTablesOwn) {
  auto own = make_context();
  auto reference = make_context(Backend::kReference);
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    const mx::array table = mx::astype(random_table(50, 100), dtype);
    EXPECT_EQ(values_of(embedding(*own, kIds, LinearWeight::dense(*own, table))),
              values_of(embedding(*reference, kIds, LinearWeight::dense(*reference, table))));
  }
}

TEST(Embedding, NoIdsGiveNoRows) {
  auto context = make_context();
  const LinearWeight table = LinearWeight::dense(*context, random_table(4, 32));
  EXPECT_EQ(embedding(*context, {}, table).shape(), (mx::Shape{0, 32}));
}

TEST(Embedding, IdsOutsideTheVocabularyAreNamed) {
  for (Backend backend : {Backend::kCpu, Backend::kReference}) {
    auto context = make_context(backend);
    const LinearWeight table = LinearWeight::dense(*context, random_table(50, 32));
    for (int32_t id : {-1, 50, 1000000}) {
      try {
        embedding(*context, {1, id}, table);
        FAIL() << id;
      } catch (const Exception& error) {
        EXPECT_EQ(error.error().code, ErrorCode::kInvalidArgument);
        EXPECT_NE(error.error().message.find(std::to_string(id) + " at place 1"),
                  std::string::npos);
        EXPECT_NE(error.error().message.find("50 tokens"), std::string::npos);
      }
    }
  }
}

TEST(Embedding, CheckModeComparesWithTheReference) {
  ContextOptions options;
  options.check = true;
  auto context = std::move(Context::create(options)).value();
  const LinearWeight table = LinearWeight::dense(*context, random_table(50, 32));
  embedding(*context, kIds, table);
  const CheckRecord record = context->check_records().at(Op::kEmbedding);
  EXPECT_EQ(record.calls, 1);
  EXPECT_EQ(record.max_abs_error, 0);
  EXPECT_GT(record.max_reference, 0);
}

}  // namespace
}  // namespace sluice::kernels
