#include "sampling/filters.h"

#include <algorithm>
#include <cmath>

namespace sluice::sampling {
namespace {

// 64 buckets for each unit of y down to -32, and one for the rest: e^-32 is below the unit of mass,
// so a top-p cut never falls into that one.
constexpr float kBucketsPerUnit = 64.0f;
constexpr int kBuckets = 32 * 64 + 1;

int bucket_of(float y) {
  const float scaled = -y * kBucketsPerUnit;
  return scaled < kBuckets - 1 ? static_cast<int>(scaled) : kBuckets - 1;
}

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

}  // namespace

void Filters::fill_histogram(const LogWeights& weights, const Cut& cut, bool with_mass) {
  histogram_.assign(kBuckets, {});
  const auto y = weights.y;
  for (size_t base = 0; base < y.size(); base += kChunk) {
    if (weights.chunk_max[base / kChunk] < cut.value) continue;
    float scaled[kChunk] = {};
    if (with_mass) {
      for (int i = 0; i < kChunk; ++i) scaled[i] = exp_nonpositive(y[base + i]) * 0x1p42f;
    }
    for (int i = 0; i < kChunk; ++i) {
      const float value = y[base + i];
      if (value == kForbidden || !cut.keeps(value, static_cast<int32_t>(base) + i)) continue;
      auto& bucket = histogram_[bucket_of(value)];
      ++bucket.count;
      bucket.mass += static_cast<uint64_t>(static_cast<int64_t>(scaled[i]));
    }
  }
}

void Filters::collect(const LogWeights& weights, const Cut& cut, int bucket) {
  const auto y = weights.y;
  members_.clear();
  for (size_t base = 0; base < y.size(); base += kChunk) {
    if (bucket_of(weights.chunk_max[base / kChunk]) > bucket) continue;
    for (size_t i = base; i < base + kChunk; ++i) {
      const auto id = static_cast<int32_t>(i);
      if (y[i] != kForbidden && bucket_of(y[i]) == bucket && cut.keeps(y[i], id)) {
        members_.push_back(id);
      }
    }
  }
  std::sort(members_.begin(), members_.end(), [&](int32_t a, int32_t b) {
    return y[a] != y[b] ? y[a] > y[b] : a < b;
  });
}

Cut Filters::cut_at_count(const LogWeights& weights, int count) {
  fill_histogram(weights, {}, false);
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    if (histogram_[bucket].count < count) {
      count -= histogram_[bucket].count;
      continue;
    }
    collect(weights, {}, bucket);
    const int32_t last = members_[count - 1];
    return {weights.y[last], last};
  }
  return {};  // fewer entries than count: all stay
}

Cut Filters::cut_at_mass(const LogWeights& weights, const Cut& before, double top_p) {
  fill_histogram(weights, before, true);
  uint64_t total = 0;
  for (const auto& bucket : histogram_) total += bucket.mass;
  const auto wanted = static_cast<uint64_t>(std::ceil(top_p * static_cast<double>(total)));
  uint64_t target = std::clamp<uint64_t>(wanted, 1, total);
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    if (histogram_[bucket].mass < target) {
      target -= histogram_[bucket].mass;
      continue;
    }
    collect(weights, before, bucket);
    for (int32_t id : members_) {
      const uint64_t mass = mass_of(weights.y[id]);
      if (mass >= target) return {weights.y[id], id};
      target -= mass;
    }
  }
  return before;  // not reached: the masses of the buckets are those of their members
}

Cut Filters::find_cut(const LogWeights& weights, const SamplingParams& params) {
  Cut cut;
  if (params.top_k > 0) cut = cut_at_count(weights, params.top_k);
  if (params.top_p < 1.0) cut = cut_at_mass(weights, cut, params.top_p);
  if (params.min_p > 0.0) {
    const auto lowest = static_cast<float>(exact_log(params.min_p));
    if (lowest > cut.value) cut = {std::min(lowest, 0.0f), std::numeric_limits<int32_t>::max()};
  }
  return cut;
}

std::vector<int32_t> Filters::top(const LogWeights& weights, int count) {
  std::vector<int32_t> ranking;
  if (count == 0) return ranking;
  const Cut cut = cut_at_count(weights, count);
  const auto y = weights.y;
  for (size_t base = 0; base < y.size(); base += kChunk) {
    if (weights.chunk_max[base / kChunk] < cut.value) continue;
    for (size_t i = base; i < base + kChunk; ++i) {
      const auto id = static_cast<int32_t>(i);
      if (y[i] != kForbidden && cut.keeps(y[i], id)) ranking.push_back(id);
    }
  }
  std::sort(ranking.begin(), ranking.end(), [&](int32_t a, int32_t b) {
    return y[a] != y[b] ? y[a] > y[b] : a < b;
  });
  return ranking;
}

}  // namespace sluice::sampling
