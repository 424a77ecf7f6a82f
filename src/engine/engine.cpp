#include "engine/engine.h"

#include <algorithm>
#include <future>
#include <utility>

#include "engine/engine_state.h"

namespace sluice::engine {
namespace {

// The wall where tensor code's exceptions become errors (design section 4). task returns a Result
// or Status.
template <class Task>
auto guarded(Task&& task) -> decltype(task()) {
  try {
    return task();
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kInternal, "the model failed: {}", e.what());
  }
}

// The sink of generate(): one thread waits for the end.
class WaitingSink : public Sink {
 public:
  WaitingSink(const TokenCallback& on_token, const std::atomic<bool>* cancel)
      : on_token_(on_token), cancel_(cancel) {}

  bool on_token(const TokenEvent& event) override { return !on_token_ || on_token_(event); }
  bool cancelled() const override { return cancel_ && cancel_->load(); }
  void on_end(Result<GenerateResult> result) override { result_.set_value(std::move(result)); }
  Result<GenerateResult> wait() { return result_.get_future().get(); }

 private:
  const TokenCallback& on_token_;  // generate() waits, so its arguments outlive this
  const std::atomic<bool>* cancel_;
  std::promise<Result<GenerateResult>> result_;
};

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}

Engine::~Engine() {
  state_->thread.run([&] { state_->close(); });
}

Result<std::unique_ptr<Engine>> Engine::load(const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(std::make_unique<State>()));
  auto& state = *engine->state_;
  SLUICE_TRY_STATUS(state.thread.run([&] { return guarded([&] { return state.open(options); }); }));
  return engine;
}

const ModelInfo& Engine::info() const {
  return state_->info;
}

Status Engine::submit(const GenerateRequest& request, std::shared_ptr<Sink> sink) {
  return state_->submit(request, std::move(sink));
}

Result<GenerateResult> Engine::generate(const GenerateRequest& request,
                                        const TokenCallback& on_token,
                                        const std::atomic<bool>* cancel) {
  if (state_->thread.is_current()) {
    return make_error(ErrorCode::kInternal,
                      "the engine was asked to wait on its own thread, from a callback");
  }
  auto sink = std::make_shared<WaitingSink>(on_token, cancel);
  SLUICE_TRY_STATUS(state_->submit(request, sink));
  return sink->wait();
}

Load Engine::load() const {
  std::lock_guard lock(state_->mutex);
  Load load;
  load.running = state_->scheduler->running();
  load.queued = std::max(0, state_->wanted() - load.running);
  load.queue_limit = state_->queue_limit;
  load.preemptions = state_->scheduler->preemptions();
  return load;
}

std::vector<KernelReport> Engine::kernel_report() const {
  std::vector<KernelReport> reports;
  const auto records = state_->context->check_records();
  for (int i = 0; i < kernels::kNumOps; ++i) {
    const auto op = static_cast<kernels::Op>(i);
    KernelReport report;
    report.op = kernels::op_name(op);
    report.kernel_runs = state_->context->kernel_runs(op);
    if (report.kernel_runs == 0) continue;  // no part of this model
    if (const auto found = records.find(op); found != records.end()) {
      report.checked_calls = found->second.calls;
      report.max_abs_error = found->second.max_abs_error;
      report.max_reference = found->second.max_reference;
    }
    reports.push_back(report);
  }
  return reports;
}

}  // namespace sluice::engine
