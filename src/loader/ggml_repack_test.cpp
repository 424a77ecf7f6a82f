#include "loader/ggml_repack.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "loader/test_files.h"

namespace sluice::loader {
namespace {

float from_half(uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
uint16_t to_half(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

// GGML's own meaning of a value, written out from the format's description.
float ggml_value(GgmlType type, const std::string& blocks, int64_t index) {
  const auto bytes = ggml_block(type).bytes;
  const auto* block = reinterpret_cast<const uint8_t*>(blocks.data()) + index / 32 * bytes;
  const int i = static_cast<int>(index % 32);
  const float d = from_half(uint16_t(block[0] | block[1] << 8));
  if (type == GgmlType::kQ8_0) return d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
  const int head = type == GgmlType::kQ4_0 ? 2 : 4;
  const int nibble = i < 16 ? block[head + i] & 15 : block[head + i - 16] >> 4;
  if (type == GgmlType::kQ4_0) return d * static_cast<float>(nibble - 8);
  return d * static_cast<float>(nibble) + from_half(uint16_t(block[2] | block[3] << 8));
}

// MLX's meaning: scale * q + bias, in double so that it rounds nothing that could hide an error.
template <class Scale>
double mlx_value(const std::vector<uint32_t>& weight,
                 const std::vector<Scale>& scales,
                 const std::vector<Scale>& biases,
                 int bits,
                 int64_t index) {
  const auto number = [](Scale value) -> double {
    if constexpr (std::is_same_v<Scale, uint16_t>) return from_half(value);
    return value;
  };
  const int per_word = 32 / bits;
  const uint32_t q = weight[index / per_word] >> (index % per_word * bits) & ((1u << bits) - 1);
  return number(scales[index / 32]) * q + number(biases[index / 32]);
}

std::string random_blocks(GgmlType type, int64_t rows, int64_t columns, float scale = 0.01f) {
  std::mt19937 random(7);
  std::string result;
  for (int64_t block = 0; block < rows * columns / 32; ++block) {
    std::string bytes(ggml_block(type).bytes, 0);
    for (auto& byte : bytes) byte = static_cast<char>(random());
    const auto put = [&](size_t at, float value) {
      const uint16_t bits = to_half(value);
      std::memcpy(bytes.data() + at, &bits, sizeof bits);
    };
    const auto uniform = [&] { return float(random() % 2001) / 1000.0f - 1.0f; };
    put(0, scale * uniform());
    if (type == GgmlType::kQ4_1) put(2, scale * uniform());
    result += bytes;
  }
  return result;
}

template <class Scale>
struct Repacked {
  std::vector<uint32_t> weight;
  std::vector<Scale> scales, biases;
  RepackOutcome outcome;
};

template <class Scale>
Repacked<Scale> run(
    GgmlType type, const std::string& blocks, int64_t rows, int64_t columns, int head_rows = 0) {
  const int64_t groups = rows * columns / 32;
  Repacked<Scale> result{std::vector<uint32_t>(groups * repacked_bits(type)),
                         std::vector<Scale>(groups),
                         std::vector<Scale>(groups),
                         RepackOutcome::kDone};
  const auto* data = reinterpret_cast<const std::byte*>(blocks.data());
  result.outcome =
      repack({type, data, rows, columns, head_rows},
             RepackTarget<Scale>{result.weight.data(), result.scales.data(), result.biases.data()});
  return result;
}

class GgmlRepack : public ::testing::TestWithParam<GgmlType> {};

TEST_P(GgmlRepack, KeepsEveryValue) {
  const GgmlType type = GetParam();
  const int64_t rows = 6, columns = 96;
  const std::string blocks = random_blocks(type, rows, columns);
  const auto result = run<uint16_t>(type, blocks, rows, columns);
  ASSERT_EQ(result.outcome, RepackOutcome::kDone);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double value =
        mlx_value(result.weight, result.scales, result.biases, repacked_bits(type), i);
    EXPECT_EQ(static_cast<float>(value), ggml_value(type, blocks, i)) << "value " << i;
  }
}

TEST_P(GgmlRepack, SubnormalScalesStayExact) {
  const GgmlType type = GetParam();
  const std::string blocks = random_blocks(type, 2, 64, 3e-6f);
  const auto result = run<uint16_t>(type, blocks, 2, 64);
  ASSERT_EQ(result.outcome, RepackOutcome::kDone);
  for (int64_t i = 0; i < 128; ++i) {
    const double value =
        mlx_value(result.weight, result.scales, result.biases, repacked_bits(type), i);
    EXPECT_EQ(static_cast<float>(value), ggml_value(type, blocks, i));
  }
}

TEST_P(GgmlRepack, PutsInterleavedRowsBack) {
  const GgmlType type = GetParam();
  const int64_t rows = 8, columns = 32;  // two heads of 4 rows
  const std::string blocks = random_blocks(type, rows, columns);
  const auto result = run<uint16_t>(type, blocks, rows, columns, 4);
  const int64_t source[] = {0, 2, 1, 3, 4, 6, 5, 7};
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double value =
        mlx_value(result.weight, result.scales, result.biases, repacked_bits(type), i);
    const int64_t from = source[i / columns] * columns + i % columns;
    EXPECT_EQ(static_cast<float>(value), ggml_value(type, blocks, from));
  }
}

TEST_P(GgmlRepack, ReportsNonFiniteScales) {
  std::string blocks = random_blocks(GetParam(), 1, 64);
  const uint16_t infinity = 0x7c00;
  std::memcpy(blocks.data() + ggml_block(GetParam()).bytes, &infinity, sizeof infinity);
  EXPECT_EQ(run<uint16_t>(GetParam(), blocks, 1, 64).outcome, RepackOutcome::kNonFinite);
  EXPECT_EQ(run<float>(GetParam(), blocks, 1, 64).outcome, RepackOutcome::kNonFinite);
}

TEST_P(GgmlRepack, SeveralThreadsGiveTheSame) {
  const GgmlType type = GetParam();
  const int64_t rows = 1024, columns = 32768;  // 18 MiB or more: split among threads
  const std::string row = random_blocks(type, 1, columns);
  std::string blocks;
  for (int64_t i = 0; i < rows; ++i) blocks += row;
  const auto result = run<uint16_t>(type, blocks, rows, columns);
  const auto single = run<uint16_t>(type, row, 1, columns);
  ASSERT_EQ(result.outcome, RepackOutcome::kDone);
  const auto words = static_cast<int64_t>(single.weight.size());
  for (int64_t i = 0; i < rows; ++i) {
    ASSERT_TRUE(
        std::equal(single.weight.begin(), single.weight.end(), result.weight.begin() + i * words));
  }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         GgmlRepack,
                         ::testing::Values(GgmlType::kQ4_0, GgmlType::kQ4_1, GgmlType::kQ8_0),
                         [](const auto& type) { return ggml_type_name(type.param); });

TEST(GgmlRepackOverflow, FallsBackToFloat32) {
  const std::string blocks = random_blocks(GgmlType::kQ8_0, 1, 32, 0).replace(0, 2, [] {
    const uint16_t d = to_half(600.0f);  // 128 * 600 is beyond float16
    return testing::raw(d);
  }());
  EXPECT_EQ(run<uint16_t>(GgmlType::kQ8_0, blocks, 1, 32).outcome, RepackOutcome::kOverflow);
  const auto result = run<float>(GgmlType::kQ8_0, blocks, 1, 32);
  ASSERT_EQ(result.outcome, RepackOutcome::kDone);
  EXPECT_EQ(result.biases[0], -128.0f * 600.0f);
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(static_cast<float>(mlx_value(result.weight, result.scales, result.biases, 8, i)),
              ggml_value(GgmlType::kQ8_0, blocks, i));
  }
}

}  // namespace
}  // namespace sluice::loader
