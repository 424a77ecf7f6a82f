// What Engine hides. Internal to engine/.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/engine.h"
#include "engine/engine_thread.h"
#include "engine/scheduler.h"
#include "kernels/context.h"
#include "models/registry.h"

namespace sluice::engine {

struct Engine::State {
  // Constant after open().
  ModelInfo info;
  Mode mode = Mode::kFast;
  int max_rows = 1;
  int queue_limit = 0;

  std::unique_ptr<kernels::Context> context;  // outlives the model; its counters are thread safe
  std::unique_ptr<models::Model> model;       // engine thread, as the scheduler
  std::unique_ptr<Scheduler> scheduler;

  std::mutex mutex;
  std::vector<std::shared_ptr<Sink>> live;     // accepted and not ended; guarded by mutex
  std::vector<std::unique_ptr<Row>> incoming;  // guarded by mutex
  bool pumping = false;                        // pump() runs or is queued; guarded by mutex
  bool closed = false;                         // guarded by mutex

  EngineThread thread;  // last: its end runs what is queued, which uses the rest

  // On the engine thread. May throw.
  Status open(const EngineOptions& options);
  // On the engine thread: one step of the scheduler, and again while there is work.
  void pump();
  void close();

  // Any thread.
  Status submit(const GenerateRequest& request, std::shared_ptr<Sink> sink);
  // Accepted requests that somebody still waits for; under the mutex.
  int wanted() const;
};

}  // namespace sluice::engine
