// Memory for packed weights. Small weights share slabs of transparent huge pages: a pass reads all
// of them from memory, and with 4 KiB pages the page walks halve the bandwidth.
#pragma once

#include <cstddef>
#include <memory>

namespace sluice::kernels {

// Zeroed, 64-byte aligned memory. It lives as long as any pointer to its slab does, so what is
// loaded together should be dropped together. bytes may be 0. Throws std::bad_alloc. Any thread.
std::shared_ptr<std::byte> allocate_weight_memory(size_t bytes);

}  // namespace sluice::kernels
