// A Service without a model: deterministic, no tensors, own thread. For tests of transport and
// protocol and for load tests, where it must behave as the engine does towards its consumers: rows
// that advance together step by step, a bounded queue, cancellation seen within one step.
//
// Text: the prompt (of a conversation: the last message's content) is cut into pieces of up to
// kPieceBytes bytes at UTF-8 borders, and each piece counts as a token. The answer is the pieces of
// the prompt, once, or over and over up to max_tokens with ignore_eos. The log-probability of the
// k-th token of an answer is -(k % 8) / 8. Sampling settings change nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chat/service.h"

namespace sluice::chat {

inline constexpr int kPieceBytes = 4;

// What one request will say, known before its first step: a list of events, one for each step, the
// last one final.
using NullScript = std::vector<ChatEvent>;

struct NullServiceOptions {
  ModelInfo model{"null", "sluice", "null-1", 0, 4096};
  double tokens_per_second = 0;  // of each row; 0: no pause between steps
  int max_running = 64;          // rows of a step, >= 1
  int queue_limit = 256;         // requests that wait for a row, >= 0
  size_t channel_capacity = 1024;
  int prefill_tokens_per_step = 1 << 20;  // smaller than the prompt: PrefillProgress events
  int default_max_tokens = 1 << 20;
  // Replaces the text rule above where it returns a script.
  std::function<std::optional<NullScript>(const ChatRequest&)> script;
};

class NullService : public Service {
 public:
  explicit NullService(NullServiceOptions options);
  // Ends what is running with Failure{kShuttingDown} and joins the thread.
  ~NullService() override;

  Submission submit(ChatRequest request) override;
  std::vector<ModelInfo> models() const override { return {options_.model}; }
  Health health() const override;

  struct Counts {
    int64_t accepted = 0;
    int64_t finished = 0;   // read or not, they ran to their end
    int64_t cancelled = 0;  // ended early: cancelled, or their consumer was too slow
    int64_t tokens = 0;     // text events made in all
  };
  Counts counts() const;

  // Makes health() report failure; requests in flight and new ones fail with kInternal.
  void break_down(std::string reason);

 private:
  struct Row {
    std::shared_ptr<EventChannel> channel;
    NullScript script;
    size_t next = 0;
  };

  NullScript plan(const ChatRequest& request, const std::vector<std::string>& prompt) const;
  void run();
  void step_locked();
  bool advance_locked(Row& row);

  const NullServiceOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::list<Row> running_;  // guarded by mutex_, as all below
  std::list<Row> queued_;
  Counts counts_;
  std::string broken_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses everything above
};

// The pieces of `text`, each at most kPieceBytes long and, where `text` is valid UTF-8, whole
// characters.
std::vector<std::string> null_tokenize(const std::string& text);

}  // namespace sluice::chat
