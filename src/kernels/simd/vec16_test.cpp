#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/context.h"
#include "kernels/simd/isa_tables.h"
#include "kernels/simd/vec16_probe.h"
#include "tensor/mx.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(Vec16Probe, vec16_probe)

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Floats of all magnitudes, both signs, zeros, subnormals, infinities and NaNs.
std::vector<float> floats_of_all_kinds() {
  std::vector<float> values;
  std::mt19937 random(7);
  for (int i = 0; i < (1 << 18); ++i)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  // Values that fall between two halves: the rounding cases.
  for (uint32_t high = 0; high < 65536; high += 3) {
    for (uint32_t low : {0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0x3000u}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  values.resize(values.size() / 16 * 16);
  return values;
}

// Finite values whose sums and quotients are finite, too.
std::vector<float> moderate_floats(int count) {
  std::vector<float> values(count);
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(-10, 10);
  for (float& value : values) value = uniform(random);
  return values;
}

template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b, const char* what, Isa isa) {
  ASSERT_EQ(a.size(), b.size());
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0) return;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::memcmp(&a[i], &b[i], sizeof(T)), 0)
        << what << " differs on " << isa_name(isa) << " at " << i << ": " << a[i] << ", " << b[i];
  }
}

TEST(ContractVec16, ArithmeticHasTheSameBitsOnEveryVariant) {
  const auto x = moderate_floats(1 << 14);
  const int count = static_cast<int>(x.size());
  auto run = [&](Isa isa) {
    std::vector<float> y(3 * count);
    const Vec16Probe& probe = vec16_probe(isa);
    probe.arithmetic(x.data(), y.data(), count);
    probe.reduce(x.data(), y.data() + count, count);
    probe.exp(x.data(), y.data() + 2 * count, count);
    return y;
  };
  const auto expected = run(Isa::kGeneric);
  for (Isa isa : supported_isas()) expect_same_bits(run(isa), expected, "arithmetic", isa);
}

TEST(ContractVec16, ConversionsHaveTheSameBitsOnEveryVariant) {
  const auto x = floats_of_all_kinds();
  const int count = static_cast<int>(x.size());
  std::vector<uint16_t> all(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<uint16_t>(i);
  auto narrow = [&](Isa isa, auto member) {
    std::vector<uint16_t> y(count);
    (vec16_probe(isa).*member)(x.data(), y.data(), count);
    return y;
  };
  auto widen = [&](Isa isa, auto member) {
    std::vector<float> y(all.size());
    (vec16_probe(isa).*member)(all.data(), y.data(), static_cast<int>(all.size()));
    return y;
  };
  for (Isa isa : supported_isas()) {
    for (auto member : {&Vec16Probe::to_f16, &Vec16Probe::to_bf16}) {
      expect_same_bits(narrow(isa, member), narrow(Isa::kGeneric, member), "to 16 bits", isa);
    }
    for (auto member : {&Vec16Probe::from_f16, &Vec16Probe::from_bf16}) {
      expect_same_bits(widen(isa, member), widen(Isa::kGeneric, member), "from 16 bits", isa);
    }
  }
}

// MLX's own types as the oracle; NaNs need only be NaNs.
TEST(Vec16, ConversionsRoundToNearestEven) {
  const auto x = floats_of_all_kinds();
  const int count = static_cast<int>(x.size());
  std::vector<uint16_t> half(count), brain(count);
  std::vector<float> back(count), brain_back(count);
  for (Isa isa : supported_isas()) {
    const Vec16Probe& probe = vec16_probe(isa);
    probe.to_f16(x.data(), half.data(), count);
    probe.to_bf16(x.data(), brain.data(), count);
    probe.from_f16(half.data(), back.data(), count);
    probe.from_bf16(brain.data(), brain_back.data(), count);
    for (int i = 0; i < count; ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(back[i]) && std::isnan(brain_back[i]));
        continue;
      }
      ASSERT_EQ(half[i], std::bit_cast<uint16_t>(mx::float16_t(x[i]))) << x[i];
      ASSERT_EQ(brain[i], std::bit_cast<uint16_t>(mx::bfloat16_t(x[i]))) << x[i];
      ASSERT_EQ(back[i], static_cast<float>(mx::float16_t(x[i])));
    }
  }
}

TEST(Vec16, BytesWidenUnsigned) {
  std::vector<uint8_t> x(256);
  for (int i = 0; i < 256; ++i) x[i] = static_cast<uint8_t>(i);
  std::vector<float> y(256);
  for (Isa isa : supported_isas()) {
    vec16_probe(isa).from_u8(x.data(), y.data(), 256);
    for (int i = 0; i < 256; ++i) ASSERT_EQ(y[i], static_cast<float>(i));
  }
}

TEST(Vec16, LowBytesAreStored) {
  const auto x = floats_of_all_kinds();
  std::vector<uint8_t> y(x.size());
  for (Isa isa : supported_isas()) {
    vec16_probe(isa).low_bytes(x.data(), y.data(), static_cast<int>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], std::bit_cast<uint32_t>(x[i]) & 0xff);
    }
  }
}

TEST(Vec16, PartialLoadsAndStoresTouchTheFirstLanesOnly) {
  for (Isa isa : supported_isas()) {
    for (int n = 0; n <= 16; ++n) {
      // Exactly n values on the heap: a read or write beyond them is one that ASan sees.
      std::vector<float> x(n, 3.0f), y(16, -1.0f), all(16, -1.0f);
      vec16_probe(isa).first(x.data(), y.data(), all.data(), n);
      for (int i = 0; i < 16; ++i) {
        ASSERT_EQ(y[i], i < n ? 3.0f : -1.0f);
        ASSERT_EQ(all[i], i < n ? 3.0f : 0.0f);
      }
    }
  }
}

TEST(Vec16, ExpIsWithinItsStatedError) {
  std::vector<float> x;
  for (double v = -86.59; v < 88.72; v += 0.0003) x.push_back(static_cast<float>(v));
  for (double v = 1e-30; v < 1; v *= 1.01) {
    x.push_back(static_cast<float>(v));
    x.push_back(static_cast<float>(-v));
  }
  x.resize(x.size() / 16 * 16);
  std::vector<float> y(x.size());
  for (Isa isa : supported_isas()) {
    vec16_probe(isa).exp(x.data(), y.data(), static_cast<int>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double exact = std::exp(static_cast<double>(x[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
      worst = std::max(worst, std::abs(y[i] - exact) / ulp);
    }
    EXPECT_LE(worst, 1.1) << isa_name(isa);
    RecordProperty(isa_name(isa), std::to_string(worst));
  }
}

TEST(Vec16, ExpAtTheEnds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {-kInfinity,
                                -1e30f,
                                -1000,
                                -104,
                                -87.4f,
                                -86.7f,
                                88.73f,
                                89,
                                1000.f,
                                kInfinity,
                                nan,
                                0.0f,
                                -0.0f,
                                88.72f,
                                -86.5f,
                                3.4028e38f};
  std::vector<float> y(16);
  for (Isa isa : supported_isas()) {
    vec16_probe(isa).exp(x.data(), y.data(), 16);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(y[i], 0.0f) << x[i];
    for (int i : {6, 7, 8, 9, 15}) EXPECT_EQ(y[i], kInfinity) << x[i];
    EXPECT_TRUE(std::isnan(y[10]));
    EXPECT_EQ(y[11], 1.0f);
    EXPECT_EQ(y[12], 1.0f);
    EXPECT_TRUE(std::isfinite(y[13]));
    EXPECT_GT(y[14], 0.0f);
  }
}

}  // namespace
}  // namespace sluice::kernels
