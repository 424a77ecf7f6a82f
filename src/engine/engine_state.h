// What Engine hides: everything here but the thread is touched on the engine thread only. Internal
// to engine/.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "engine/generation.h"
#include "kernels/context.h"
#include "models/registry.h"

namespace sluice::engine {

struct Session::State {
  std::weak_ptr<Engine::State> engine;
  CachedSequence cached;           // engine thread
  std::atomic<int> num_cached{0};  // for cached_tokens() on any thread

  void reset();
};

struct Engine::State {
  EngineThread thread;
  ModelInfo info;  // constant after load

  Mode mode = Mode::kFast;
  std::unique_ptr<kernels::Context> context;  // outlives the model; its counters are thread safe
  std::unique_ptr<models::Model> model;
  sampling::Sampler sampler;
  std::list<Session::State*> sessions;  // the one used last at the end

  // On the engine thread. May throw.
  Status open(const EngineOptions& options);
  Result<GenerateResult> generate(const GenerateRequest& request,
                                  const TokenCallback& on_token,
                                  Session::State* session);
  void close();

 private:
  Result<GenerationPlan> make_plan(const GenerateRequest& request) const;
  // Drops idle sessions until `positions` more fit behind `sequence`.
  void make_room(const cache::SequenceState& sequence, int positions, const Session::State* keep);
};

}  // namespace sluice::engine
