#include "cli/load_progress.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sluice::cli {

void LoadProgress::set(uint64_t done, uint64_t total) {
  if (!bar_) {
    if (isatty(STDERR_FILENO) == 0) return;
    bar_ = std::make_unique<ProgressBar>(
        fmt::format("loading {}", what_), total, ProgressUnit::kBytes);
  }
  bar_->set(done);
}

void LoadProgress::finish() {
  bar_.reset();
}

Result<std::unique_ptr<engine::Engine>> load_with_progress(engine::EngineOptions options) {
  LoadProgress progress(options.model.filename().string());
  options.progress = [&](uint64_t done, uint64_t total) { progress.set(done, total); };
  auto engine = engine::Engine::load(options);
  progress.finish();
  return engine;
}

}  // namespace sluice::cli
