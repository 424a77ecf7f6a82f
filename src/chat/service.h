// The seam between front ends and whatever makes tokens. A front end holds a Service&, submits
// requests and reads events; it sees no tensor, no thread and no scheduler.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/event_channel.h"
#include "chat/types.h"

namespace sluice::chat {

struct ModelInfo {
  std::string id;
  std::string owned_by;
  std::string fingerprint;  // what decides the tokens beside the request: model, device, build
  int64_t created = 0;      // Unix time in seconds
  int context_length = 0;   // prompt and answer together, in tokens
};

struct Health {
  bool ok = true;      // false: no request can succeed any more
  std::string reason;  // why not ok; empty otherwise
  int running = 0;     // requests that a step of the model may advance
  int queued = 0;      // accepted and waiting
  int queue_limit = 0;
};

// One accepted request, as its consumer holds it. Destroying it cancels what has not ended.
// Members may be called from any thread; poll() and wait() by one consumer at a time.
class Generation {
 public:
  explicit Generation(std::shared_ptr<EventChannel> channel) : channel_(std::move(channel)) {}
  ~Generation() {
    channel_->set_notify({});
    channel_->cancel();
  }
  Generation(const Generation&) = delete;
  Generation& operator=(const Generation&) = delete;

  // See EventChannel.
  std::optional<ChatEvent> poll() { return channel_->poll(); }
  std::optional<ChatEvent> wait(std::chrono::milliseconds timeout) {
    return channel_->wait(timeout);
  }
  void set_notify(std::function<void()> notify) { channel_->set_notify(std::move(notify)); }

  // The producer stops within one step and the row is freed; it does not wait for that.
  void cancel() { channel_->cancel(); }

 private:
  std::shared_ptr<EventChannel> channel_;
};

// Accepted, or why not.
using Submission = std::variant<std::shared_ptr<Generation>, Failure>;

// Members may be called from any thread. It outlives every Generation that it gave out.
class Service {
 public:
  virtual ~Service() = default;

  // Checks the request, makes the prompt (template, tokens) on the calling thread, which takes
  // milliseconds for long ones, and queues it. Never waits for room or for the model.
  virtual Submission submit(ChatRequest request) = 0;

  // The models that `ChatRequest::model` may name, the default one first. Never empty.
  virtual std::vector<ModelInfo> models() const = 0;

  // Cheap and never blocked by a running step.
  virtual Health health() const = 0;
};

}  // namespace sluice::chat
