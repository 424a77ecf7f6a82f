#include "chat/engine_service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
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

EngineService::EngineService(engine::Engine& engine,
                             EngineServiceOptions options,
                             text::Tokenizer tokenizer)
    : engine_(engine), options_(std::move(options)), tokenizer_(std::move(tokenizer)) {
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
  if (options.queue_limit < 0 || options.channel_capacity < 1) {
    return make_error(
        ErrorCode::kInvalidArgument,
        "the queue limit is {} and the event buffer {}; they must be at least 0 and 1",
        options.queue_limit,
        options.channel_capacity);
  }
  const auto& info = engine.info();
  SLUICE_TRY(auto tokenizer, text::Tokenizer::from_json(info.tokenizer_json));
  std::unique_ptr<EngineService> service(
      new EngineService(engine, std::move(options), std::move(tokenizer)));
  SLUICE_TRY(service->template_, make_template(info.chat_template, info, service->tokenizer_));
  SLUICE_TRY(service->tool_template_,
             make_template(info.tool_chat_template, info, service->tokenizer_));
  service->thread_ = std::thread([raw = service.get()] { raw->run(); });
  return service;
}

EngineService::~EngineService() {
  std::deque<Job> waiting;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting.swap(queue_);
    if (running_) running_->cancel();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (auto& job : waiting) {
    job.channel->push(Failure{FailureKind::kShuttingDown, "", "the service is shutting down"});
  }
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

  Job job;
  const int behind = model_.context_length - static_cast<int>(tokens->size());
  job.request.prompt = std::move(*tokens);
  job.request.sampling = sampling_of(request);
  job.request.max_tokens = std::min(request.max_tokens.value_or(behind), behind);
  job.request.min_tokens = std::min(request.min_tokens, *job.request.max_tokens);
  job.request.ignore_eos = request.ignore_eos;
  job.request.prompt_index = static_cast<uint32_t>(request.prompt_index);
  job.request.choice_index = static_cast<uint32_t>(request.choice_index);
  job.stop = std::move(request.stop);
  job.channel = std::make_shared<EventChannel>(options_.channel_capacity);
  auto generation = std::make_shared<Generation>(job.channel);
  {
    std::lock_guard lock(mutex_);
    std::erase_if(queue_, [](const Job& waiting) { return waiting.channel->is_cancelled(); });
    const auto queued = static_cast<int>(queue_.size());
    if (queued > 0 || running_) {
      if (queued >= options_.queue_limit) {
        return Failure{FailureKind::kQueueFull,
                       "",
                       fmt::format("the queue is full: {} requests are waiting and {} may; try "
                                   "again later",
                                   queued,
                                   options_.queue_limit)};
      }
    }
    queue_.push_back(std::move(job));
  }
  wake_.notify_all();
  return generation;
}

void EngineService::run() {
  const auto session = options_.keep_prefix ? engine_.new_session() : nullptr;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    Job job = std::move(queue_.front());
    queue_.pop_front();
    if (job.channel->is_cancelled()) continue;
    running_ = job.channel;
    lock.unlock();
    try {
      serve(job, session.get());
    } catch (const std::exception& error) {
      spdlog::error("the engine service failed on a request: {}", error.what());
      job.channel->push(Failure{FailureKind::kInternal, "", error.what()});
    }
    lock.lock();
    running_ = nullptr;
  }
}

void EngineService::serve(Job& job, engine::Session* session) {
  auto events = AnswerEvents::create(tokenizer_, job.request, job.stop, *job.channel);
  if (!events.ok()) {
    job.channel->push(Failure{FailureKind::kInternal, "", events.error().message});
    return;
  }
  job.request.cancel = &job.channel->cancel_flag();
  const auto result = engine_.generate(
      job.request,
      [&](const engine::TokenEvent& event) { return events->on_token(event); },
      session);
  events->finish(result);
}

Health EngineService::health() const {
  std::lock_guard lock(mutex_);
  return {true, "", running_ ? 1 : 0, static_cast<int>(queue_.size()), options_.queue_limit};
}

}  // namespace sluice::chat
