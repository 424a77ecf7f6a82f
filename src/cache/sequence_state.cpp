#include "cache/sequence_state.h"

#include <algorithm>

#include "kernels/attention/attention.h"

namespace sluice::cache {
namespace {

int pages_for(int positions) {
  return (positions + kernels::kPageSize - 1) / kernels::kPageSize;
}

}  // namespace

SequenceState::~SequenceState() {
  for (auto page : pages_) pool_->release(page);
}

int SequenceState::missing_pages(int count) const {
  return std::max(0, pages_for(length_ + count) - static_cast<int>(pages_.size()));
}

size_t SequenceState::slot_bytes() const {
  size_t bytes = 0;
  for (const auto& slot : slots_) bytes += slot.nbytes();
  return bytes;
}

Status SequenceState::begin_pass(int count, bool settled) {
  if (count < 1) {
    return make_error(
        ErrorCode::kInvalidArgument, "a pass of {} positions; it must have at least 1", count);
  }
  if (pending_ != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a pass of {} positions at length {} has not been committed yet",
                      pending_,
                      length_);
  }
  SLUICE_TRY(auto pages, pool_->allocate(missing_pages(count)));
  pages_.insert(pages_.end(), pages.begin(), pages.end());
  const int layers = recurrent_ != nullptr ? recurrent_->layout.layers : 0;
  while (static_cast<int>(slots_.size()) < layers) {
    slots_.emplace_back(*recurrent_->context, recurrent_->layout);
  }
  pending_ = count;
  settled_ = settled;
  return {};
}

Status SequenceState::commit(int keep) {
  if (pending_ == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "commit of {} positions at length {} without a pass",
                      keep,
                      length_);
  }
  if (keep < 0 || keep > pending_ || (settled_ && !slots_.empty() && keep != pending_)) {
    return make_error(ErrorCode::kInvalidArgument,
                      "commit of {} positions; the pass had {}{}",
                      keep,
                      pending_,
                      settled_ && !slots_.empty() ? " and is settled, so all of them stay" : "");
  }
  if (!settled_) {
    for (auto& slot : slots_) slot.commit(*recurrent_->context, recurrent_->layout, keep);
  }
  length_ += keep;
  pending_ = 0;
  release_pages_behind(length_);
  return {};
}

void SequenceState::abandon_pass() {
  for (auto& slot : slots_) slot.drop_record();
  pending_ = 0;
  release_pages_behind(length_);
}

void SequenceState::release_pages_behind(int length) {
  const size_t needed = pages_for(length);
  while (pages_.size() > needed) {
    pool_->release(pages_.back());
    pages_.pop_back();
  }
}

size_t SequenceState::Snapshot::nbytes() const {
  size_t bytes = 0;
  for (const auto& slot : slots) bytes += slot.nbytes();
  return bytes;
}

Result<SequenceState::Snapshot> SequenceState::snapshot() const {
  if (pending_ != 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "a snapshot at length {} while a pass of {} positions is pending",
                      length_,
                      pending_);
  }
  Snapshot snapshot;
  snapshot.length = length_;
  for (const auto& slot : slots_) snapshot.slots.push_back(slot.snapshot());
  return snapshot;
}

Status SequenceState::restore(const Snapshot& snapshot) {
  const bool fresh = snapshot.length == 0;  // taken before the slots were made, perhaps
  if (pending_ != 0 || snapshot.length > length_ ||
      (!fresh && snapshot.slots.size() != slots_.size())) {
    return make_error(ErrorCode::kInvalidArgument,
                      "restore to length {} with {} slots; the sequence has length {}, {} slots "
                      "and {} positions pending",
                      snapshot.length,
                      snapshot.slots.size(),
                      length_,
                      slots_.size(),
                      pending_);
  }
  if (fresh) slots_.clear();
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].restore(snapshot.slots[i]);
  length_ = snapshot.length;
  release_pages_behind(length_);
  return {};
}

}  // namespace sluice::cache
