// Top-k, top-p and min-p as one cut in the ranking of a distribution.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sampling/params.h"
#include "sampling/softmax_mass.h"

namespace sluice::sampling {

// The ranking: larger y first, the lower id among equals. Entries up to and including
// (value, last_id) are kept. The default keeps all.
struct Cut {
  float value = -std::numeric_limits<float>::infinity();
  int32_t last_id = std::numeric_limits<int32_t>::max();

  bool keeps(float y, int32_t id) const { return y > value || (y == value && id <= last_id); }
};

// Where top-k, then top-p over what top-k left (renormalised), then min-p cut. At least one entry
// is kept.
//
// Top-p keeps the shortest run of the ranking whose mass reaches top_p of the total, counted in
// whole units (softmax_mass.h). No full sort: a histogram of y finds the bucket of the cut, and
// only that bucket is sorted.
class Filters {
 public:
  Cut find_cut(const LogWeights& weights, const SamplingParams& params);

  // The first `count` entries of the ranking, in its order; fewer if fewer are above -inf.
  std::vector<int32_t> top(const LogWeights& weights, int count);

 private:
  struct Bucket {
    uint64_t mass = 0;
    int count = 0;
  };
  void fill_histogram(const LogWeights& weights, const Cut& cut, bool with_mass);
  // The entries of one bucket that the cut keeps, in ranking order, in members_.
  void collect(const LogWeights& weights, const Cut& cut, int bucket);
  Cut cut_at_count(const LogWeights& weights, int count);
  Cut cut_at_mass(const LogWeights& weights, const Cut& before, double top_p);

  std::vector<Bucket> histogram_;
  std::vector<int32_t> members_;
};

}  // namespace sluice::sampling
