// The pipe from the thread that makes tokens to the one that sends them: bounded, one producer, one
// consumer, and the producer never waits. A consumer that leaves `capacity` events lying loses the
// stream: its events are dropped, it gets Failure{kSlowConsumer}, and the producer sees
// "cancelled".
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

#include "chat/types.h"

namespace sluice::chat {

// Every member may be called from any thread, with at most one consumer and one producer at a time.
class EventChannel {
 public:
  // capacity: events that may lie unread, >= 1. The final event always has room.
  explicit EventChannel(size_t capacity);

  // ---- producer

  // Puts an event in. A PrefillProgress replaces an unread one. False: nobody will read it (ended,
  // cancelled, or just given up because the buffer is full); stop producing.
  bool push(ChatEvent event);

  // True once the producer should stop; a plain atomic load, meant for every step.
  bool is_cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  // The flag behind is_cancelled(), for producers that look at one. Lives as long as this.
  const std::atomic<bool>& cancel_flag() const { return cancelled_; }

  // ---- consumer

  // The next event, if there is one. After a final event: never another one. After cancel(): the
  // unread events are gone and Failure{kCancelled} comes once, unless a final event was read.
  std::optional<ChatEvent> poll();

  // As poll(), but waits for an event for up to `timeout`. After the final event it does not wait.
  std::optional<ChatEvent> wait(std::chrono::milliseconds timeout);

  // Asks the producer to stop. Has no effect on a stream that has ended.
  void cancel();

  // Called whenever an event has been put in, on the thread that did it, and at once if events are
  // waiting already. It must not block and not call into this channel. An empty function removes
  // it: when this returns, the old one is not running and will not run again.
  void set_notify(std::function<void()> notify);

 private:
  std::optional<ChatEvent> poll_locked();
  void fail_locked(Failure failure);

  const size_t capacity_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable readable_;
  std::deque<ChatEvent> events_;  // guarded by mutex_
  bool closed_ = false;           // a final event was put in; guarded by mutex_
  bool drained_ = false;          // a final event was read; guarded by mutex_
  std::function<void()> notify_;  // guarded by mutex_, also while it runs
};

}  // namespace sluice::chat
