// One thread that runs tasks in order. Lazy MLX arrays may only be evaluated on the thread that
// made them, so everything that touches the model goes through here.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/result.h"

namespace sluice::engine {

class EngineThread {
 public:
  EngineThread() : thread_([this] { loop(); }) {}
  // Runs what is queued, then joins. Must not be destroyed on the engine thread.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  // Whether the caller is a task of it.
  bool is_current() const { return std::this_thread::get_id() == thread_.get_id(); }

  // Queues the task and returns. Any thread. The task must not throw.
  void post(std::function<void()> task);

  // Runs task there, waits, and returns its value or rethrows its exception. On the engine thread
  // itself it throws Exception(kInternal): waiting there would be for ever.
  template <class Task>
  auto run(Task&& task) -> decltype(task()) {
    if (is_current()) {
      throw_error(ErrorCode::kInternal, "the engine was called from one of its own callbacks");
    }
    // By reference: the caller waits, so the task outlives its run.
    std::packaged_task<decltype(task())()> packaged([&task] { return task(); });
    auto future = packaged.get_future();
    post([&packaged] { packaged(); });
    return future.get();
  }

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::thread thread_;                       // last: starts when the rest is there
};

}  // namespace sluice::engine
