// How a job runs: the caller writes it down, opens it by making the epoch odd, and works on it
// itself; workers that see the epoch join in. All take ranges from one cursor. When the cursor is
// at the end the caller closes the job (epoch even) and waits for those inside only: a worker that
// the operating system kept away costs nothing.
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/cpu_limit.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice {

namespace {

// How long a worker looks for the next job before it sleeps: longer than the gap between two
// kernels of one pass (a few us), shorter than anybody would notice in the load average.
constexpr std::chrono::microseconds kSpinTime{40};
// Spins of the caller on a worker that is still inside before it offers its processor to it.
constexpr int kSpinsBeforeYield = 4000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Rounding to nearest, subnormals kept, no traps: on every thread, or bits would depend on who
// computes a range. The former state comes back when the scope ends.
class FloatStateScope {
 public:
#if defined(__x86_64__)
  FloatStateScope() : former_(_mm_getcsr()) {
    _mm_setcsr(0x1f80);
  }
  ~FloatStateScope() {
    _mm_setcsr(former_);
  }

 private:
  unsigned former_;
#elif defined(__aarch64__)
  FloatStateScope() : former_(__builtin_aarch64_get_fpcr()) {
    __builtin_aarch64_set_fpcr(0);
  }
  ~FloatStateScope() {
    __builtin_aarch64_set_fpcr(former_);
  }

 private:
  unsigned former_;
#else
  FloatStateScope() = default;
  ~FloatStateScope() {}
#endif

 public:
  FloatStateScope(const FloatStateScope&) = delete;
  FloatStateScope& operator=(const FloatStateScope&) = delete;
};

thread_local bool inside_body = false;

// Ranges per thread: enough that a late or slow thread is made up for, few enough that taking one
// (a contended atomic, about 50 ns) does not show.
constexpr int64_t kRangesPerThread = 8;

}  // namespace

struct ThreadPool::State {
  // The job; written while the epoch is even and nobody is inside.
  void* context = nullptr;
  RangeFunction function = nullptr;
  int64_t items = 0;
  int64_t range = 1;

  alignas(64) std::atomic<int> epoch{0};  // odd: a job is open
  alignas(64) std::atomic<int64_t> cursor{0};
  alignas(64) std::atomic<int> inside{0};  // workers that may be reading the job
  std::atomic<int> sleepers{0};
  std::atomic<bool> stop{false};
  std::mutex callers;
  std::vector<std::thread> workers;

  void take_ranges() {
    for (;;) {
      const int64_t begin = cursor.fetch_add(range, std::memory_order_relaxed);
      if (begin >= items) return;
      function(context, begin, std::min(items, begin + range));
    }
  }

  static bool is_new(int value, int last) { return (value & 1) != 0 && value != last; }

  // The epoch of an open job other than last; spins, then sleeps.
  int wait_for_job(int last) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
      for (int i = 0; i < 64; ++i) {
        const int value = epoch.load(std::memory_order_acquire);
        if (is_new(value, last) || stop.load(std::memory_order_relaxed)) return value;
        pause();
      }
      if (std::chrono::steady_clock::now() - start > kSpinTime) break;
    }
    // sleepers and epoch are both sequentially consistent: either the caller that opens a job sees
    // this sleeper, or this load sees the job.
    sleepers.fetch_add(1);
    int value = epoch.load();
    while (!is_new(value, last) && !stop.load()) {
      epoch.wait(value);
      value = epoch.load();
    }
    sleepers.fetch_sub(1);
    return value;
  }

  void work() {
    const FloatStateScope float_state;
    inside_body = true;
    for (int last = 0;;) {
      last = wait_for_job(last);
      if (stop.load()) return;
      // The job may have been closed, and the next one opened, since: ask again from the inside.
      inside.fetch_add(1);
      if ((epoch.load() & 1) != 0) take_ranges();
      inside.fetch_sub(1);
    }
  }

  void wake_sleepers() {
    if (sleepers.load() > 0) epoch.notify_all();
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  for (int i = 1; i < threads; ++i) {
    state_->workers.emplace_back([state = state_.get()] { state->work(); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop = true;
  state_->epoch.fetch_add(2);  // what sleepers wait for to change
  state_->epoch.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::size() const {
  return static_cast<int>(state_->workers.size()) + 1;
}

void ThreadPool::run(int64_t items, int64_t grain, void* context, RangeFunction function) {
  if (items <= 0) return;
  if (inside_body) return function(context, 0, items);
  State& state = *state_;
  std::lock_guard lock(state.callers);
  const FloatStateScope float_state;
  inside_body = true;
  grain = std::max<int64_t>(1, grain);
  if (state.workers.empty() || items <= grain) {
    function(context, 0, items);
  } else {
    const int64_t grains = (items + grain - 1) / grain;
    const int64_t ranges = kRangesPerThread * size();
    state.context = context;
    state.function = function;
    state.items = items;
    state.range = (grains + ranges - 1) / ranges * grain;
    state.cursor.store(0, std::memory_order_relaxed);
    state.epoch.fetch_add(1);
    state.wake_sleepers();
    state.take_ranges();
    state.epoch.fetch_add(1);
    for (int spins = 0; state.inside.load() != 0; ++spins) {
      spins < kSpinsBeforeYield ? pause() : std::this_thread::yield();
    }
  }
  inside_body = false;
}

int ThreadPool::default_size() {
  std::ifstream file("/proc/self/cgroup");
  const std::string membership((std::istreambuf_iterator<char>(file)), {});
  const auto quota = cgroup_cpu_quota("/sys/fs/cgroup", membership);
  const int cpus = affinity_cpu_count();
  // Rounded down: a thread more than the quota has all of them stopped for parts of each period.
  return quota ? std::clamp(static_cast<int>(*quota), 1, cpus) : cpus;
}

}  // namespace sluice
