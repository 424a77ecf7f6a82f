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

Status SequenceState::begin_pass(int count) {
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
  pending_ = count;
  return {};
}

Status SequenceState::commit(int keep) {
  if (pending_ == 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "commit of {} positions at length {} without a pass",
                      keep,
                      length_);
  }
  if (keep < 0 || keep > pending_) {
    return make_error(
        ErrorCode::kInvalidArgument, "commit of {} positions; the pass had {}", keep, pending_);
  }
  length_ += keep;
  pending_ = 0;
  const size_t needed = pages_for(length_);
  while (pages_.size() > needed) {
    pool_->release(pages_.back());
    pages_.pop_back();
  }
  return {};
}

}  // namespace sluice::cache
