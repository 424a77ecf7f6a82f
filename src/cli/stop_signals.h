// SIGINT and SIGTERM as calls on an ordinary thread, where locks may be taken.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace sluice::cli {

// While one lives, the two signals are blocked and a thread of its own waits for them. Make it on
// the main thread before any other thread is started: threads inherit what is blocked. One at a
// time.
class StopSignals {
 public:
  StopSignals();
  // The signals stay blocked: the program is ending, and a late one must not change its exit code.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // `handler` gets the number of the signal, 1 for the first one that came since. Until it is set a
  // signal ends the program as usual. It must stay callable; an empty one takes it away.
  void on_signal(std::function<void(int count)> handler);

 private:
  void run();

  std::mutex mutex_;
  std::function<void(int)> handler_;  // guarded by mutex_
  int count_ = 0;                     // guarded by mutex_
  std::atomic<bool> ending_{false};
  std::thread thread_;  // last: it uses everything above
};

}  // namespace sluice::cli
