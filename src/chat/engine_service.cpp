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

// A special token's text from tokenizer_config.json: a string, or an object with "content".
std::string token_text(const Json& config, const char* key) {
  if (!config.is_object()) return "";
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  return found->is_object() ? found->value("content", "") : "";
}

Result<std::optional<text::ChatTemplate>> make_template(const std::optional<std::string>& source,
                                                        const engine::ModelInfo& info,
                                                        const text::Tokenizer& tokenizer) {
  if (!source) return std::optional<text::ChatTemplate>();
  const auto config = Json::parse(info.tokenizer_config_json, nullptr, false);
  auto bos = token_text(config, "bos_token");
  if (bos.empty() && info.bos_token_id) {
    bos = tokenizer.id_to_token(*info.bos_token_id).value_or("");
  }
  SLUICE_TRY(auto made,
             text::ChatTemplate::from_source(*source, bos, token_text(config, "eos_token")));
  return std::optional<text::ChatTemplate>(std::move(made));
}

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

EngineService::EngineService(engine::Engine& engine,
                             EngineServiceOptions options,
                             text::Tokenizer tokenizer)
    : engine_(engine),
      options_(std::move(options)),
      tokenizer_(std::move(tokenizer)),
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
  const auto& info = engine.info();
  SLUICE_TRY(auto tokenizer, text::Tokenizer::from_json(info.tokenizer_json));
  std::unique_ptr<EngineService> service(
      new EngineService(engine, std::move(options), std::move(tokenizer)));
  SLUICE_TRY(service->template_, make_template(info.chat_template, info, service->tokenizer_));
  SLUICE_TRY(service->tool_template_,
             make_template(info.tool_chat_template, info, service->tokenizer_));
  return service;
}

EngineService::~EngineService() {
  live_->stopping = true;
  std::unique_lock lock(live_->mutex);
  live_->ended.wait(lock, [this] { return live_->count == 0; });
}

Result<std::vector<int32_t>> EngineService::encode(const Prompt& prompt) const {
  if (const auto* messages = std::get_if<Messages>(&prompt)) return encode(*messages);
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  SLUICE_TRY(auto ids, tokenizer_.encode(std::get<std::string>(prompt)));
  // The begin token may stand in the text and be added by the tokenizer as well.
  const auto bos = engine_.info().bos_token_id;
  if (bos && ids.size() >= 2 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

Result<std::vector<int32_t>> EngineService::encode(const Messages& messages) const {
  const bool tools = !messages.tools.empty();
  const auto& chosen = tools && tool_template_ ? tool_template_ : template_;
  if (!chosen) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the model has no chat template; send a raw prompt to /v1/completions");
  }
  const std::string messages_json = messages.messages.dump();
  const std::string tools_json = tools ? messages.tools.dump() : "";
  const std::string kwargs_json = messages.template_kwargs.dump();
  text::ChatRenderInput input;
  input.messages_json = messages_json;
  input.tools_json = tools_json;
  input.kwargs_json = kwargs_json;
  SLUICE_TRY(const auto text, chosen->render(input));
  return tokenizer_.encode(text, {.add_special = false, .parse_special = true});
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
  auto tokens = encode(request.prompt);
  if (!tokens.ok()) {
    return Failure{
        FailureKind::kInvalidRequest, prompt_field(request.prompt), tokens.error().message};
  }
  if (auto failure = check_length(request.prompt, tokens->size())) return std::move(*failure);

  engine::GenerateRequest generate;
  const int behind = model_.context_length - static_cast<int>(tokens->size());
  generate.prompt = std::move(*tokens);
  generate.sampling = sampling_of(request);
  generate.max_tokens = std::min(request.max_tokens.value_or(behind), behind);
  generate.min_tokens = std::min(request.min_tokens, *generate.max_tokens);
  generate.ignore_eos = request.ignore_eos;
  generate.prompt_index = static_cast<uint32_t>(request.prompt_index);
  generate.choice_index = static_cast<uint32_t>(request.choice_index);

  auto channel = std::make_shared<EventChannel>(options_.channel_capacity);
  auto events = AnswerEvents::create(tokenizer_, generate, request.stop, *channel);
  if (!events.ok()) return failure_of(events.error());
  auto generation = std::make_shared<Generation>(channel);
  auto sink = std::make_shared<Sink>(live_, std::move(channel), std::move(*events));
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
