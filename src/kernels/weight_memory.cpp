#include "kernels/weight_memory.h"

#include <sys/mman.h>

#include <mutex>
#include <new>

namespace sluice::kernels {

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSlabBytes = size_t{32} << 20;
// Larger weights have their own mapping: at most this much of a slab is left unused.
constexpr size_t kOwnMapping = size_t{4} << 20;

size_t round_up(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// Mapped at a multiple of the huge page size; zeroed by the kernel; pages that nobody touches take
// no memory.
std::shared_ptr<std::byte> map(size_t bytes) {
  const size_t size = round_up(bytes, kHugePage);
  void* mapping = mmap(nullptr,
                       size + kHugePage,
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1,
                       0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  const size_t skip = -reinterpret_cast<uintptr_t>(mapping) % kHugePage;
  std::byte* begin = static_cast<std::byte*>(mapping) + skip;
#if defined(MADV_HUGEPAGE)
  madvise(begin, size, MADV_HUGEPAGE);  // advice: without it, or refused, all still works
#endif
  return {begin, [mapping, size](std::byte*) { munmap(mapping, size + kHugePage); }};
}

}  // namespace

std::shared_ptr<std::byte> allocate_weight_memory(size_t bytes) {
  if (bytes >= kOwnMapping) return map(bytes);
  static std::mutex mutex;
  static std::weak_ptr<std::byte> current;  // its weights keep it alive
  static size_t used = 0;
  std::lock_guard lock(mutex);
  std::shared_ptr<std::byte> slab = current.lock();
  if (!slab || used + bytes > kSlabBytes) {
    slab = map(kSlabBytes);
    current = slab;
    used = 0;
  }
  std::byte* memory = slab.get() + used;
  used += round_up(bytes, kAlignment);
  return {std::move(slab), memory};
}

}  // namespace sluice::kernels
