#include "kernels/rope/rope_angles.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace sluice::kernels {

namespace {

// Two kinds of layers (local and global) in the pass being made and the one before it.
constexpr size_t kKeptTables = 4;
// Angles worth handing to another thread: about 5 us of sines and cosines.
constexpr int64_t kGrainAngles = 128;

// base^(-2i / dims) as mx::fast::rope's composed form has it, by the same MLX operations.
std::vector<float> default_frequencies(float base, int pairs) {
  const mx::StreamOrDevice cpu = mx::Device::cpu;
  const float step = std::log(base) / static_cast<float>(pairs);
  auto exponents = mx::multiply(
      mx::arange(0.0, -double{1} * pairs, -1.0, mx::float32, cpu), mx::array(step), cpu);
  auto frequencies = mx::exp(exponents, cpu);
  frequencies.eval();
  return {frequencies.data<float>(), frequencies.data<float>() + pairs};
}

std::vector<float> given_frequencies(mx::array freqs) {
  freqs.eval();
  const float* data = freqs.data<float>();
  std::vector<float> result(freqs.shape(0));
  for (size_t i = 0; i < result.size(); ++i) result[i] = 1.0f / data[i * freqs.strides(0)];
  return result;
}

bool equal_rows(const std::vector<RowSpan>& a, const std::vector<RowSpan>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const RowSpan& x, const RowSpan& y) {
    return x.first_token == y.first_token && x.count == y.count &&
           x.first_position == y.first_position;
  });
}

}  // namespace

RopeAngles::RopeAngles(const std::vector<RowSpan>& rows,
                       float scale,
                       std::vector<float> inverse_frequencies)
    : rows_(rows),
      scale_(scale),
      inverse_frequencies_(std::move(inverse_frequencies)),
      pairs_(static_cast<int64_t>(inverse_frequencies_.size())) {
  for (const RowSpan& row : rows) {
    for (int i = 0; i < row.count; ++i) {
      positions_.push_back(static_cast<float>(row.first_position + i) * scale);
    }
  }
  cosines_.resize(positions_.size() * pairs_);
  sines_.resize(positions_.size() * pairs_);
}

void RopeAngles::fill(ThreadPool& pool) {
  std::call_once(filled_, [&] {
    const int64_t grain = std::max<int64_t>(1, kGrainAngles / pairs_);
    const int64_t tokens = static_cast<int64_t>(positions_.size());
    pool.parallel_for(tokens, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * pairs_; i < end * pairs_; ++i) {
        const float angle = positions_[i / pairs_] * inverse_frequencies_[i % pairs_];
        cosines_[i] = static_cast<float>(std::cos(double{angle}));
        sines_[i] = static_cast<float>(std::sin(double{angle}));
      }
    });
  });
}

bool RopeAngles::is_for(const std::vector<RowSpan>& rows,
                        float scale,
                        const std::vector<float>& inverse_frequencies) const {
  return scale_ == scale && equal_rows(rows_, rows) && inverse_frequencies_ == inverse_frequencies;
}

std::shared_ptr<RopeAngles> rope_angles(const std::vector<RowSpan>& rows, const RopeSpec& spec) {
  static std::mutex mutex;
  static std::map<std::pair<float, int>, std::vector<float>> frequencies_of;  // (base, pairs)
  static std::vector<std::shared_ptr<RopeAngles>> tables;                     // latest first

  std::lock_guard lock(mutex);
  std::vector<float> given;
  if (spec.freqs) given = given_frequencies(*spec.freqs);
  auto default_entry = [&]() -> const std::vector<float>& {
    const int pairs = spec.dims / 2;
    auto [entry, is_new] = frequencies_of.try_emplace({spec.base, pairs});
    if (is_new) entry->second = default_frequencies(spec.base, pairs);
    return entry->second;
  };
  const std::vector<float>& frequencies = spec.freqs ? given : default_entry();
  auto found = std::find_if(tables.begin(), tables.end(), [&](const auto& table) {
    return table->is_for(rows, spec.scale, frequencies);
  });
  if (found == tables.end()) {
    if (tables.size() == kKeptTables) tables.pop_back();
    tables.insert(tables.begin(), std::make_shared<RopeAngles>(rows, spec.scale, frequencies));
    return tables.front();
  }
  std::rotate(tables.begin(), found, found + 1);
  return tables.front();
}

}  // namespace sluice::kernels
