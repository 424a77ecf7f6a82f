// What the engine's tests share: the default model and token streams. For *_test.cpp only.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace sluice::engine {

// The default model's path: SLUICE_DEFAULT_MODEL, else where `make setup` puts it.
inline std::filesystem::path test_model_path() {
  if (const char* path = std::getenv("SLUICE_DEFAULT_MODEL")) return path;
  return std::string(SLUICE_SOURCE_DIR) + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline std::unique_ptr<Engine> load_engine(EngineOptions options = {}) {
  options.model = test_model_path();
  if (options.cache_tokens == 0) options.cache_tokens = 1024;
  auto engine = Engine::load(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message << " (the default model comes with `make setup`)";
    std::abort();
  }
  return std::move(engine).value();
}

inline std::vector<int32_t> random_tokens(int count, int seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> id(20, 49000);
  std::vector<int32_t> tokens(count);
  for (auto& token : tokens) token = id(random);
  return tokens;
}

// Submits a request and hands out its end later. Any thread but the engine's.
class PendingRequest : public Sink {
 public:
  bool on_token(const TokenEvent& event) override {
    if (event.index == 0) first_token.set_value();
    if (event.logprob) logprobs.push_back(*event.logprob);
    if (hook) hook(event);
    return true;
  }
  bool cancelled() const override { return cancel; }
  void on_end(Result<GenerateResult> result) override { end_.set_value(std::move(result)); }

  void wait_for_token() { first_token.get_future().wait(); }
  Result<GenerateResult> result() { return end_.get_future().get(); }

  std::atomic<bool> cancel{false};
  std::function<void(const TokenEvent&)> hook;  // on the engine thread
  std::vector<float> logprobs;                  // after result()
  std::promise<void> first_token;

 private:
  std::promise<Result<GenerateResult>> end_;
};

inline std::shared_ptr<PendingRequest> submit(Engine& engine, const GenerateRequest& request) {
  auto pending = std::make_shared<PendingRequest>();
  engine.submit(request, pending).or_throw();
  return pending;
}

}  // namespace sluice::engine
