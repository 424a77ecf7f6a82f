// The process's one thread pool for CPU kernels. Work is split over output rows only, at places
// that do not depend on the number of threads where that could show in the bits; a kernel's result
// must be the same for every pool size (design rule 1).
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace sluice {

class ThreadPool {
 public:
  // threads >= 1 counts the calling thread: threads - 1 workers are started.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;

  // Calls body(begin, end) on disjoint ranges that cover [0, items), each range a multiple of
  // grain long but the last, on the workers and the caller; returns when all are done. Ranges are
  // handed out dynamically. body must not throw. One caller at a time (the engine's evaluation
  // thread); a second caller waits. Called from inside a body it runs inline.
  template <class Body>
  void parallel_for(int64_t items, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(items, grain, &body, [](void* context, int64_t begin, int64_t end) {
      (*static_cast<Plain*>(context))(begin, end);
    });
  }

  // Threads to use by default: the smaller of CPU affinity and the cgroup's CPU quota, at least 1.
  static int default_size();

 private:
  using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
  void run(int64_t items, int64_t grain, void* context, RangeFunction function);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
