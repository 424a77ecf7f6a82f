#include "cache/page_pool.h"

namespace sluice::cache {

PagePool::PagePool(int num_pages) : references_(num_pages, 0) {
  free_.reserve(num_pages);
  for (int page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

Result<std::vector<int32_t>> PagePool::allocate(int count) {
  if (count > free_pages()) {
    return make_error(ErrorCode::kResourceExhausted,
                      "the key/value cache has {} of {} pages free and {} more are needed; use a "
                      "shorter prompt, fewer sequences or a larger cache",
                      free_pages(),
                      num_pages(),
                      count);
  }
  std::vector<int32_t> pages;
  pages.reserve(count);
  for (int i = 0; i < count; ++i) {
    pages.push_back(free_.back());
    free_.pop_back();
    references_[pages.back()] = 1;
  }
  return pages;
}

void PagePool::add_reference(int32_t page) {
  SLUICE_CHECK(references_.at(page) > 0, "page {} is free", page);
  ++references_[page];
}

void PagePool::release(int32_t page) {
  SLUICE_CHECK(references_.at(page) > 0, "page {} is already free", page);
  if (--references_[page] == 0) free_.push_back(page);
}

}  // namespace sluice::cache
