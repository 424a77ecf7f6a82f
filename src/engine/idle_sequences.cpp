#include "engine/idle_sequences.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

void IdleSequences::add(std::unique_ptr<cache::SequenceState> state,
                        std::span<const int32_t> tokens) {
  const auto held = tokens.first(state->length());
  if (held.empty()) return;
  idle_.push_back({std::move(state), {held.begin(), held.end()}});
  while (slot_bytes() > max_slot_bytes_) evict_oldest();
}

std::unique_ptr<cache::SequenceState> IdleSequences::take_prefix_of(
    std::span<const int32_t> prompt) {
  auto best = idle_.end();
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    const auto& tokens = it->tokens;
    if (tokens.size() >= prompt.size()) continue;
    if (best != idle_.end() && tokens.size() <= best->tokens.size()) continue;
    if (std::equal(tokens.begin(), tokens.end(), prompt.begin())) best = it;
  }
  if (best == idle_.end()) return nullptr;
  auto state = std::move(best->state);
  idle_.erase(best);
  return state;
}

bool IdleSequences::evict_oldest() {
  if (idle_.empty()) return false;
  idle_.pop_front();
  return true;
}

size_t IdleSequences::slot_bytes() const {
  size_t bytes = 0;
  for (const auto& idle : idle_) bytes += idle.state->slot_bytes();
  return bytes;
}

int IdleSequences::pages() const {
  int pages = 0;
  for (const auto& idle : idle_) pages += static_cast<int>(idle.state->pages().size());
  return pages;
}

}  // namespace sluice::engine
