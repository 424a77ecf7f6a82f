// Cosines and sines of one pass. Every layer of a pass asks for the same ones, for queries and for
// keys, so the latest few tables are kept for the next call.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/rope/rope.h"

namespace sluice::kernels {

// cos and sin of angle(token, pair), [N, dims / 2] each, in float32.
//
// The angle is the reference's, bit for bit: float32(position) * scale in float32, times the
// float32 inverse frequency (which MLX computes, once per base). Its cosine and sine are taken in
// double precision and rounded once, so they depend on nothing but the position and the frequency;
// the reference's are MLX's float32 approximations of the same.
class RopeAngles {
 public:
  RopeAngles(const std::vector<RowSpan>& rows, float scale, std::vector<float> inverse_frequencies);

  // Computes the table unless that was done before. For the task that is about to read it.
  void fill(ThreadPool& pool);
  const float* cosines(int64_t token) const { return cosines_.data() + token * pairs_; }
  const float* sines(int64_t token) const { return sines_.data() + token * pairs_; }
  int pairs() const { return static_cast<int>(pairs_); }

  bool is_for(const std::vector<RowSpan>& rows,
              float scale,
              const std::vector<float>& inverse_frequencies) const;

 private:
  const std::vector<RowSpan> rows_;
  const float scale_;
  const std::vector<float> inverse_frequencies_;
  const int64_t pairs_;
  std::once_flag filled_;
  std::vector<float> positions_;  // scaled, [N]
  std::vector<float> cosines_, sines_;
};

// The table for rows, from the latest few or new and not filled yet. Any thread.
std::shared_ptr<RopeAngles> rope_angles(const std::vector<RowSpan>& rows, const RopeSpec& spec);

}  // namespace sluice::kernels
