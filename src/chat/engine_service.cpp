#include "chat/engine_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/version.h"
#include "chat/answer_events.h"

namespace sluice::chat {
namespace {

engine::SamplingChoices sampling_of(const ChatRequest& request) {
  const auto& from = request.sampling;
  engine::SamplingChoices to;
  to.temperature = from.temperature;
  to.top_k = from.top_k;
  to.top_p = from.top_p;
  to.min_p = from.min_p;
  to.repetition_penalty = from.repetition_penalty;
  to.presence_penalty = from.presence_penalty;
  to.frequency_penalty = from.frequency_penalty;
  to.penalty_window = from.penalty_window;
  to.logit_bias = from.logit_bias;
  to.seed = from.seed;
  to.logprobs = request.logprobs;
  return to;
}

const char* prompt_field(const Prompt& prompt) {
  return std::holds_alternative<Messages>(prompt) ? "messages" : "prompt";
}

int room(const engine::ModelInfo& info) {
  return std::min(info.context_tokens, info.cache_tokens);
}

}  // namespace

// What the service and its sinks share, since a sink may end after its consumer has gone.
struct EngineService::Live {
  std::atomic<bool> stopping{false};
  std::mutex mutex;
  std::condition_variable ended;
  int count = 0;  // sinks that have not ended; guarded by mutex
};

// From the engine's tokens to the channel of one request.
class EngineService::Sink : public engine::Sink {
 public:
  Sink(std::shared_ptr<Live> live, std::shared_ptr<EventChannel> channel, AnswerEvents events)
      : live_(std::move(live)), channel_(std::move(channel)), events_(std::move(events)) {
    std::lock_guard lock(live_->mutex);
    ++live_->count;
  }
  ~Sink() override {
    // Notified under the lock: the service may be gone as soon as it is released.
    std::lock_guard lock(live_->mutex);
    if (--live_->count == 0) live_->ended.notify_all();
  }

  void on_prefill(int done, int total) override { channel_->push(PrefillProgress{done, total}); }
  bool on_token(const engine::TokenEvent& event) override { return events_.on_token(event); }
  bool cancelled() const override { return channel_->is_cancelled() || live_->stopping; }
  void on_end(Result<engine::GenerateResult> result) override {
    if (live_->stopping) {
      channel_->push(Failure{FailureKind::kShuttingDown, "", "the service is shutting down"});
    } else {
      events_.finish(result);
    }
  }

 private:
  const std::shared_ptr<Live> live_;
  const std::shared_ptr<EventChannel> channel_;
  AnswerEvents events_;
};

EngineService::EngineService(engine::Engine& engine, EngineServiceOptions options, ModelText text)
    : engine_(engine),
      options_(std::move(options)),
      text_(std::move(text)),
      live_(std::make_shared<Live>()) {
  const auto& info = engine.info();
  model_.id = options_.model_id.empty() ? info.name : options_.model_id;
  model_.owned_by = "sluice";
  model_.created = options_.created;
  model_.context_length = room(info);
  model_.fingerprint =
      fmt::format("sluice-{}-{}-{}-{}", version(), revision(), info.kernels, info.isa);
}

Result<std::unique_ptr<EngineService>> EngineService::create(engine::Engine& engine,
                                                             EngineServiceOptions options) {
  if (options.channel_capacity < 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the event buffer holds {} events; it must hold at least 1",
                      options.channel_capacity);
  }
  SLUICE_TRY(auto text, ModelText::create(engine.info()));
  return std::unique_ptr<EngineService>(
      new EngineService(engine, std::move(options), std::move(text)));
}

EngineService::~EngineService() {
  live_->stopping = true;
  std::unique_lock lock(live_->mutex);
  live_->ended.wait(lock, [this] { return live_->count == 0; });
}

std::optional<Failure> EngineService::check_length(const Prompt& prompt, size_t tokens) const {
  if (tokens == 0) {
    return Failure{FailureKind::kInvalidRequest,
                   prompt_field(prompt),
                   "the prompt has no tokens; send at least one"};
  }
  if (tokens < static_cast<size_t>(model_.context_length)) return std::nullopt;
  return Failure{FailureKind::kPromptTooLong,
                 prompt_field(prompt),
                 fmt::format("the prompt has {} tokens, but the context holds {} with at least one "
                             "for the answer; shorten it",
                             tokens,
                             model_.context_length)};
}

Submission EngineService::submit(ChatRequest request) {
  if (!request.model.empty() && request.model != model_.id) {
    return Failure{
        FailureKind::kUnknownModel,
        "model",
        fmt::format("there is no model '{}'; this server has '{}'", request.model, model_.id)};
  }
  auto prompt = text_.encode(request.prompt);
  if (!prompt.ok()) {
    return Failure{
        FailureKind::kInvalidRequest, prompt_field(request.prompt), prompt.error().message};
  }
  auto& tokens = prompt->tokens;
  if (auto failure = check_length(request.prompt, tokens.size())) return std::move(*failure);

  engine::GenerateRequest generate;
  const int behind = model_.context_length - static_cast<int>(tokens.size());
  generate.prompt = std::move(tokens);
  generate.sampling = sampling_of(request);
  generate.max_tokens = std::min(request.max_tokens.value_or(behind), behind);
  generate.min_tokens = std::min(request.min_tokens, *generate.max_tokens);
  generate.ignore_eos = request.ignore_eos;
  generate.prompt_index = static_cast<uint32_t>(request.prompt_index);
  generate.choice_index = static_cast<uint32_t>(request.choice_index);

  auto channel = std::make_shared<EventChannel>(options_.channel_capacity);
  auto text = text::AnswerText::create(
      text_.tokenizer(), generate.prompt, std::move(request.stop), generate.min_tokens);
  if (!text.ok()) return failure_of(text.error());
  AnswerEvents events(text_.tokenizer(), std::move(*text), std::move(prompt->parser), *channel);
  auto generation = std::make_shared<Generation>(channel);
  auto sink = std::make_shared<Sink>(live_, std::move(channel), std::move(events));
  if (auto status = engine_.submit(generate, std::move(sink)); !status.ok()) {
    return failure_of(status.error());
  }
  return generation;
}

Health EngineService::health() const {
  const auto load = engine_.load();
  return {true, "", load.running, load.queued, load.queue_limit};
}

}  // namespace sluice::chat
