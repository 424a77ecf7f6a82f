// Who uses which page of the paged key/value storage. Page ids index every layer's storage alike.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace sluice::cache {

// Reference-counted page ids [0, num_pages). Not thread safe: the engine thread's.
class PagePool {
 public:
  explicit PagePool(int num_pages);

  int num_pages() const { return static_cast<int>(references_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }

  // count pages with one reference each, or an error that names both numbers and changes nothing.
  Result<std::vector<int32_t>> allocate(int count);
  void add_reference(int32_t page);
  // Drops one reference; the page is free again at the last one. Releasing a free page throws.
  void release(int32_t page);

 private:
  std::vector<int32_t> references_;
  std::vector<int32_t> free_;  // a stack: the page freed last is used first, its memory is warm
};

}  // namespace sluice::cache
