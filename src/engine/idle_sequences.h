// Sequences whose request has ended and whose keys and values stay in the cache, until another
// request goes on from them or needs their pages. Internal to engine/; engine thread only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "cache/sequence_state.h"

namespace sluice::engine {

class IdleSequences {
 public:
  // max_slot_bytes: what the idle sequences may hold beside pages; the oldest go first.
  explicit IdleSequences(size_t max_slot_bytes) : max_slot_bytes_(max_slot_bytes) {}

  // tokens: what the state's positions hold, at least state->length() of them.
  void add(std::unique_ptr<cache::SequenceState> state, std::span<const int32_t> tokens);

  // Hands out the longest sequence whose tokens begin `prompt` and are fewer; null: none.
  std::unique_ptr<cache::SequenceState> take_prefix_of(std::span<const int32_t> prompt);

  // Gives back the pages of the sequence that was idle longest. False: there is none.
  bool evict_oldest();
  void clear() { idle_.clear(); }
  int pages() const;
  size_t slot_bytes() const;

 private:
  struct Idle {
    std::unique_ptr<cache::SequenceState> state;
    std::vector<int32_t> tokens;
  };
  const size_t max_slot_bytes_;
  std::list<Idle> idle_;  // the one that ended last at the end
};

}  // namespace sluice::engine
