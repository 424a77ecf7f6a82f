// What one sequence owns: its pages and its length. Host integers hold every position and length;
// tensors hold data only (design section 2).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cache/page_pool.h"

namespace sluice::cache {

// Owned by whoever made it (Model::new_sequence); gives its pages back when destroyed. Engine
// thread only. The pool must outlive it.
class SequenceState {
 public:
  explicit SequenceState(PagePool& pool) : pool_(&pool) {}
  ~SequenceState();
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;

  int length() const { return length_; }    // settled positions
  int pending() const { return pending_; }  // positions of the pass that awaits its commit
  const std::vector<int32_t>& pages() const { return pages_; }

  // Pages needed beyond the present ones for count more positions.
  int missing_pages(int count) const;
  // Starts a pass of count >= 1 positions: takes the missing pages. Errors (pool exhausted, a pass
  // already pending) change nothing.
  Status begin_pass(int count);
  // Ends the pass: the first keep of its positions stay, 0 <= keep <= pending. Pages wholly behind
  // the new length are released. Errors (no pass pending, keep out of range) change nothing.
  Status commit(int keep);

 private:
  PagePool* pool_;
  std::vector<int32_t> pages_;
  int length_ = 0;
  int pending_ = 0;
};

}  // namespace sluice::cache
