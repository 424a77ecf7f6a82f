// The Service over engine::Engine: template and tokenizer on the caller's thread, a bounded queue,
// one thread that feeds the engine, which serves one request after the other.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "chat/service.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::chat {

struct EngineServiceOptions {
  std::string model_id;  // what clients call the model; empty: the name of its file or folder
  int64_t created = 0;   // Unix time in seconds, for the list of models
  int queue_limit = 64;  // requests that wait for the engine, >= 0
  size_t channel_capacity = 4096;  // events that a consumer may leave unread, >= 1
  // Keep the last prompt and answer in the cache, so that the next turn of a conversation computes
  // only what is new. Moves no bit of an answer in fast mode; in reference mode it may.
  bool keep_prefix = true;
};

class EngineService : public Service {
 public:
  // The engine must outlive the service. Errors: a tokenizer or chat template of the checkpoint
  // that cannot be read; options out of range.
  static Result<std::unique_ptr<EngineService>> create(engine::Engine& engine,
                                                       EngineServiceOptions options);
  // Cancels what runs, fails what waits with kShuttingDown, and joins the thread.
  ~EngineService() override;

  // max_tokens beyond the room behind the prompt is cut to it: the answer then ends with kLength.
  Submission submit(ChatRequest request) override;
  std::vector<ModelInfo> models() const override { return {model_}; }
  Health health() const override;

 private:
  struct Job {
    engine::GenerateRequest request;
    std::vector<std::string> stop;
    std::shared_ptr<EventChannel> channel;
  };

  EngineService(engine::Engine& engine, EngineServiceOptions options, text::Tokenizer tokenizer);
  Result<std::vector<int32_t>> encode(const Prompt& prompt) const;
  Result<std::vector<int32_t>> encode(const Messages& messages) const;
  std::optional<Failure> check_length(const Prompt& prompt, size_t tokens) const;
  void run();
  void serve(Job& job, engine::Session* session);

  engine::Engine& engine_;
  const EngineServiceOptions options_;
  const text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
  std::optional<text::ChatTemplate> tool_template_;  // where tools have one of their own
  ModelInfo model_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> queue_;                  // guarded by mutex_, as all below
  std::shared_ptr<EventChannel> running_;  // null: idle
  bool stopping_ = false;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace sluice::chat
