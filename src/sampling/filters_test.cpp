#include "sampling/filters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "sampling/softmax_mass.h"

namespace sluice::sampling {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

std::vector<float> padded(std::vector<float> y) {
  const float largest = *std::max_element(y.begin(), y.end());
  for (auto& value : y) value -= largest;
  y.resize((y.size() + kChunk - 1) / kChunk * kChunk, kForbidden);
  return y;
}

// Ids of the whole ranking, by a full sort.
std::vector<int32_t> ranking_of(const std::vector<float>& y) {
  std::vector<int32_t> ids(y.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::erase_if(ids, [&](int32_t id) { return y[id] == kForbidden; });
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) { return y[a] > y[b]; });
  return ids;
}

// The model: filters one after the other on the sorted list, as the header says.
std::vector<int32_t> brute_force(const std::vector<float>& y, const SamplingParams& p) {
  auto kept = ranking_of(y);
  if (p.top_k > 0 && kept.size() > static_cast<size_t>(p.top_k)) kept.resize(p.top_k);
  if (p.top_p < 1) {
    uint64_t total = 0, sum = 0;
    for (int32_t id : kept) total += mass_of(y[id]);
    size_t count = 0;
    const double target = std::ceil(p.top_p * static_cast<double>(total));
    while (count == 0 || (static_cast<double>(sum) < target && count < kept.size())) {
      sum += mass_of(y[kept[count++]]);
    }
    kept.resize(count);
  }
  if (p.min_p > 0) {
    std::erase_if(kept, [&](int32_t id) { return y[id] < static_cast<float>(std::log(p.min_p)); });
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

// y with its bounds.
struct Weighted {
  explicit Weighted(const std::vector<float>& values) : y(values) { fill_chunk_max(y, chunk_max); }
  LogWeights view() const { return {y, chunk_max}; }
  const std::vector<float>& y;
  std::vector<float> chunk_max;
};

std::vector<int32_t> kept_by(const std::vector<float>& y, const SamplingParams& p) {
  Filters filters;
  const Cut cut = filters.find_cut(Weighted(y).view(), p);
  std::vector<int32_t> kept;
  for (size_t i = 0; i < y.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (y[i] != kForbidden && cut.keeps(y[i], id)) kept.push_back(id);
  }
  return kept;
}

SamplingParams params(int top_k, double top_p, double min_p) {
  SamplingParams p;
  p.top_k = top_k;
  p.top_p = top_p;
  p.min_p = min_p;
  return p;
}

TEST(Filters, EqualABruteForceModelOnManyDistributions) {
  std::mt19937 random(3);
  const float spreads[] = {0.001f, 0.5f, 3.0f, 40.0f, 3000.0f};
  for (int size : {1, 2, 63, 64, 65, 1000, 5000}) {
    for (float spread : spreads) {
      std::normal_distribution<float> normal(0, spread);
      std::vector<float> raw(size);
      // Rounded, so that ties are common; some entries forbidden.
      for (auto& x : raw) x = std::round(normal(random) * 8 / spread) * spread / 8;
      for (int i = 1; i < size; i += 7) raw[i] = kForbidden;
      const auto y = padded(raw);
      for (int top_k : {0, 1, 2, 5, size / 2, size}) {
        for (double top_p : {1.0, 0.999, 0.9, 0.5, 0.01}) {
          for (double min_p : {0.0, 0.001, 0.1, 1.0}) {
            const auto p = params(top_k, top_p, min_p);
            ASSERT_EQ(kept_by(y, p), brute_force(y, p))
                << size << " " << spread << " " << top_k << " " << top_p << " " << min_p;
          }
        }
      }
    }
  }
}

TEST(Filters, TopKTiesGoToTheLowerId) {
  const auto y = padded({1, 5, 5, 5, 0});
  EXPECT_EQ(kept_by(y, params(2, 1, 0)), (std::vector<int32_t>{1, 2}));
}

TEST(Filters, TopPKeepsTheEntryThatCrosses) {
  const auto y = padded({std::log(0.5f), std::log(0.3f), std::log(0.2f)});
  EXPECT_EQ(kept_by(y, params(0, 0.4, 0)), (std::vector<int32_t>{0}));
  EXPECT_EQ(kept_by(y, params(0, 0.6, 0)), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept_by(y, params(0, 0.81, 0)), (std::vector<int32_t>{0, 1, 2}));
}

TEST(Filters, TopPIsRenormalisedOverTopK) {
  // Over all, 0 has half of the mass; among the best two, five eighths.
  const auto y = padded({std::log(0.5f), std::log(0.3f), std::log(0.2f)});
  EXPECT_EQ(kept_by(y, params(0, 0.55, 0)), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(kept_by(y, params(2, 0.55, 0)), (std::vector<int32_t>{0}));
}

TEST(Filters, TopListsTheRankingWithTiesByLowerId) {
  const auto y = padded({3, 7, 3, kForbidden, 9});
  Filters filters;
  EXPECT_EQ(filters.top(Weighted(y).view(), 0), (std::vector<int32_t>{}));
  EXPECT_EQ(filters.top(Weighted(y).view(), 3), (std::vector<int32_t>{4, 1, 0}));
  EXPECT_EQ(filters.top(Weighted(y).view(), 5), (std::vector<int32_t>{4, 1, 0, 2}));
}

}  // namespace
}  // namespace sluice::sampling
