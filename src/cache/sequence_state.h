// What one sequence owns: its pages, its gated-delta slots and its length. Host integers hold every
// position and length; tensors hold data only (design section 2).
//
// Every sequence has storage of its own, so rows join, leave and are reordered by listing other
// sequences in the next pass; none pins another's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cache/gated_delta_slot.h"
#include "cache/page_pool.h"

namespace sluice::cache {

// Gated-delta layers of a model: where and how their slots are made. Borrowed; both must outlive
// the sequences.
struct RecurrentStorage {
  const kernels::Context* context = nullptr;
  GatedDeltaLayout layout;
};

// Owned by whoever made it (Model::new_sequence); gives its pages back when destroyed. Engine
// thread only. The pool must outlive it.
class SequenceState {
 public:
  // recurrent: of a model with gated-delta layers; their slots are made by the first pass.
  explicit SequenceState(PagePool& pool, const RecurrentStorage* recurrent = nullptr)
      : pool_(&pool), recurrent_(recurrent) {}
  ~SequenceState();
  SequenceState(const SequenceState&) = delete;
  SequenceState& operator=(const SequenceState&) = delete;

  int length() const { return length_; }    // settled positions
  int pending() const { return pending_; }  // positions of the pass that awaits its commit
  const std::vector<int32_t>& pages() const { return pages_; }
  // Slot of the model's i-th gated-delta layer, during and after the first pass.
  GatedDeltaSlot& slot(int i) { return slots_.at(i); }
  const std::vector<GatedDeltaSlot>& slots() const { return slots_; }
  // Bytes of the slots; pages are the pool's.
  size_t slot_bytes() const;

  // Pages needed beyond the present ones for count more positions.
  int missing_pages(int count) const;
  // Starts a pass of count >= 1 positions: takes the missing pages. A settled pass moves the slots
  // itself; a tentative one records. Errors (pool exhausted, a pass already pending) change
  // nothing.
  Status begin_pass(int count, bool settled = true);
  // Ends the pass: the first keep of its positions stay, 0 <= keep <= pending; where there are
  // slots, a settled pass keeps all. Pages wholly behind the new length are released, and a
  // tentative pass's slots advance. Errors (no pass pending, keep out of range) change nothing.
  Status commit(int keep);
  // Ends a pass that was never evaluated.
  void abandon_pass();

  // The slots as they are now; the sequence can come back to this length. Deep copies. No pass may
  // be pending.
  struct Snapshot {
    int length = 0;
    std::vector<GatedDeltaSlot::Snapshot> slots;
    size_t nbytes() const;
  };
  Result<Snapshot> snapshot() const;
  // Back to a snapshot of this sequence, whose pages still hold its positions. Errors (a pass is
  // pending, the snapshot lies ahead) change nothing.
  Status restore(const Snapshot& snapshot);

 private:
  void release_pages_behind(int length);

  PagePool* pool_;
  const RecurrentStorage* recurrent_;
  std::vector<int32_t> pages_;
  std::vector<GatedDeltaSlot> slots_;
  int length_ = 0;
  int pending_ = 0;
  bool settled_ = true;
};

}  // namespace sluice::cache
