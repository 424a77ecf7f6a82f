#include "chat/event_channel.h"

#include <fmt/format.h>

#include <utility>

#include "base/result.h"

namespace sluice::chat {

EventChannel::EventChannel(size_t capacity) : capacity_(capacity) {
  SLUICE_CHECK(capacity >= 1, "event channel of capacity {}", capacity);
}

bool EventChannel::push(ChatEvent event) {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  bool alive = true;
  if (is_final(event)) {
    closed_ = true;
    events_.push_back(std::move(event));
  } else if (std::holds_alternative<PrefillProgress>(event) && !events_.empty() &&
             std::holds_alternative<PrefillProgress>(events_.back())) {
    events_.back() = std::move(event);
  } else if (events_.size() >= capacity_) {
    fail_locked({FailureKind::kSlowConsumer,
                 "",
                 fmt::format("the stream was read too slowly: {} events were waiting, which is all "
                             "the buffer holds; read faster or ask for fewer tokens",
                             events_.size())});
    alive = false;
  } else {
    events_.push_back(std::move(event));
  }
  readable_.notify_one();
  // Under the lock, so that set_notify({}) can promise that it is not running.
  if (notify_) notify_();
  return alive;
}

void EventChannel::fail_locked(Failure failure) {
  events_.clear();
  events_.push_back(std::move(failure));
  closed_ = true;
  cancelled_.store(true, std::memory_order_release);
}

std::optional<ChatEvent> EventChannel::poll_locked() {
  if (events_.empty()) return std::nullopt;
  std::optional<ChatEvent> event(std::move(events_.front()));
  events_.pop_front();
  drained_ = is_final(*event);
  return event;
}

std::optional<ChatEvent> EventChannel::poll() {
  std::lock_guard lock(mutex_);
  return poll_locked();
}

std::optional<ChatEvent> EventChannel::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  readable_.wait_for(lock, timeout, [this] { return !events_.empty() || drained_; });
  return poll_locked();
}

void EventChannel::cancel() {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  fail_locked({FailureKind::kCancelled, "", "the request was cancelled"});
  readable_.notify_one();
  if (notify_) notify_();
}

void EventChannel::set_notify(std::function<void()> notify) {
  std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
  if (notify_ && !events_.empty()) notify_();
}

}  // namespace sluice::chat
