// The Service over engine::Engine: template and tokenizer on the caller's thread, text on the
// engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/model_text.h"
#include "chat/service.h"
#include "engine/engine.h"

namespace sluice::chat {

struct EngineServiceOptions {
  std::string model_id;  // what clients call the model; empty: the name of its file or folder
  int64_t created = 0;   // Unix time in seconds, for the list of models
  size_t channel_capacity = 4096;  // events that a consumer may leave unread, >= 1
};

class EngineService : public Service {
 public:
  // The engine must outlive the service. Errors: a tokenizer or chat template of the checkpoint
  // that cannot be read; options out of range.
  static Result<std::unique_ptr<EngineService>> create(engine::Engine& engine,
                                                       EngineServiceOptions options);
  // Fails what has not ended with kShuttingDown; waits for the engine to let go of it, which takes
  // a step.
  ~EngineService() override;

  // max_tokens beyond the room behind the prompt is cut to it: the answer then ends with kLength.
  Submission submit(ChatRequest request) override;
  std::vector<ModelInfo> models() const override { return {model_}; }
  Health health() const override;

 private:
  class Sink;
  struct Live;

  EngineService(engine::Engine& engine, EngineServiceOptions options, ModelText text);
  std::optional<Failure> check_length(const Prompt& prompt, size_t tokens) const;

  engine::Engine& engine_;
  const EngineServiceOptions options_;
  const ModelText text_;
  ModelInfo model_;
  const std::shared_ptr<Live> live_;  // the sinks' way to say that they have ended
};

}  // namespace sluice::chat
