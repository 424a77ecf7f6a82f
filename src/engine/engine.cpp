#include "engine/engine.h"

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

}  // namespace

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}

Session::~Session() {
  auto engine = state_->engine.lock();
  if (!engine) return;
  engine->thread.run([&] {
    engine->sessions.remove(state_.get());
    state_->reset();
  });
}

void Session::clear() {
  if (auto engine = state_->engine.lock()) engine->thread.run([&] { state_->reset(); });
}

int Session::cached_tokens() const {
  return state_->num_cached;
}

Engine::Engine(std::shared_ptr<State> state) : state_(std::move(state)) {}

Engine::~Engine() {
  state_->thread.run([&] { state_->close(); });
}

Result<std::unique_ptr<Engine>> Engine::load(const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine(std::make_shared<State>()));
  auto& state = *engine->state_;
  SLUICE_TRY_STATUS(state.thread.run([&] { return guarded([&] { return state.open(options); }); }));
  return engine;
}

const ModelInfo& Engine::info() const {
  return state_->info;
}

std::unique_ptr<Session> Engine::new_session() {
  auto session = std::make_unique<Session::State>();
  session->engine = state_;
  state_->thread.run([&] { state_->sessions.push_back(session.get()); });
  return std::unique_ptr<Session>(new Session(std::move(session)));
}

Result<GenerateResult> Engine::generate(const GenerateRequest& request,
                                        const TokenCallback& on_token,
                                        Session* session) {
  auto* session_state = session ? session->state_.get() : nullptr;
  if (session_state && session_state->engine.lock() != state_) {
    return make_error(ErrorCode::kInvalidArgument, "the session belongs to another engine");
  }
  return guarded([&] {
    return state_->thread.run([&] {
      return guarded([&] { return state_->generate(request, on_token, session_state); });
    });
  });
}

std::vector<KernelReport> Engine::kernel_report() const {
  std::vector<KernelReport> reports;
  const auto records = state_->context->check_records();
  for (int i = 0; i < kernels::kNumOps; ++i) {
    const auto op = static_cast<kernels::Op>(i);
    KernelReport report;
    report.op = kernels::op_name(op);
    report.kernel_runs = state_->context->kernel_runs(op);
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
