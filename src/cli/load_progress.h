// The progress bar while weights come in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "cli/terminal.h"
#include "engine/engine.h"

namespace sluice::cli {

// Shows nothing unless stderr is a terminal. set() may be called on another thread than the rest,
// one call at a time.
class LoadProgress {
 public:
  explicit LoadProgress(std::string what) : what_(std::move(what)) {}

  void set(uint64_t done, uint64_t total);
  // Takes the bar away.
  void finish();

 private:
  std::string what_;
  std::unique_ptr<ProgressBar> bar_;
};

// Engine::load() under such a bar. Errors: its own.
Result<std::unique_ptr<engine::Engine>> load_with_progress(engine::EngineOptions options);

}  // namespace sluice::cli
