#include "engine/engine_state.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "engine/sampling_defaults.h"
#include "loader/checkpoint.h"
#include "tensor/checks.h"

namespace sluice::engine {
namespace {

constexpr int kDefaultMaxRows = 8;

Result<kernels::ContextOptions> context_options(const EngineOptions& options) {
  kernels::ContextOptions context;
  context.threads = options.threads;
  context.check = options.check_kernels;
  if (options.mode == Mode::kReference) context.backend = kernels::Backend::kReference;
  if (!options.kernels.empty()) {
    SLUICE_TRY(const auto backend, kernels::parse_backend(options.kernels));
    if (options.mode == Mode::kReference && backend != kernels::Backend::kReference) {
      return make_error(ErrorCode::kInvalidArgument,
                        "reference mode runs the reference kernels, not '{}'; leave the kernels "
                        "out or ask for fast mode",
                        options.kernels);
    }
    context.backend = backend;
  }
  if (!options.isa.empty()) {
    SLUICE_TRY(context.isa, kernels::parse_isa(options.isa));
  }
  if (!options.activations.empty()) {
    if (context.backend == kernels::Backend::kReference) {
      return make_error(ErrorCode::kInvalidArgument,
                        "activations '{}' are for the own kernels; the reference kernels compute "
                        "in the model's dtype",
                        options.activations);
    }
    SLUICE_TRY(context.activations, kernels::ActivationPlan::parse(options.activations));
  }
  if (context.check && context.backend == kernels::Backend::kReference) {
    return make_error(ErrorCode::kInvalidArgument,
                      "checking kernels against the reference needs own kernels: fast mode with "
                      "kernels 'cpu'");
  }
  return context;
}

Result<models::ModelOptions> model_options(const EngineOptions& options) {
  models::ModelOptions model;
  if (options.cache_tokens < 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} cache tokens; give a number of at least 1, or 0 for the default",
                      options.cache_tokens);
  }
  model.cache_tokens = options.cache_tokens;
  if (options.dtype.empty()) return model;
  for (const auto dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    if (options.dtype == tensor::dtype_name(dtype)) model.dtype = dtype;
  }
  if (!model.dtype) {
    return make_error(ErrorCode::kInvalidArgument,
                      "unknown dtype '{}'; known are float32, float16, bfloat16",
                      options.dtype);
  }
  return model;
}

Result<int> max_rows_of(const EngineOptions& options) {
  const bool reference = options.mode == Mode::kReference;
  if (options.max_rows < 0 || options.queue_limit < 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} rows at once and {} waiting requests; neither may be negative",
                      options.max_rows,
                      options.queue_limit);
  }
  if (reference && options.max_rows > 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "reference mode runs one row at a time, not {}: the bits of its arithmetic "
                      "depend on what shares a pass",
                      options.max_rows);
  }
  if (options.max_rows > 0) return options.max_rows;
  return reference ? 1 : kDefaultMaxRows;
}

}  // namespace

Status Engine::State::open(const EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SLUICE_TRY(const auto for_context, context_options(options));
  SLUICE_TRY(const auto for_model, model_options(options));
  SLUICE_TRY(max_rows, max_rows_of(options));
  queue_limit = options.queue_limit;
  SLUICE_TRY(context, kernels::Context::create(for_context));
  mode = options.mode;
  loader::OpenOptions open_options;
  open_options.progress = options.progress;
  SLUICE_TRY(auto checkpoint, loader::open_checkpoint(options.model, open_options));
  SLUICE_TRY(info.sampling_defaults, sampling_defaults(checkpoint.generation_config));
  SLUICE_TRY(model, models::load_model(checkpoint, *context, for_model));

  const auto& traits = model->traits();
  const auto path = std::filesystem::absolute(checkpoint.path).lexically_normal();
  info.name = path.has_filename() ? path.stem().string() : path.parent_path().filename().string();
  info.family = traits.family;
  info.format = checkpoint.format;
  info.kernels = kernels::backend_name(context->backend());
  info.isa = context->reference() ? "" : kernels::isa_name(context->isa());
  info.activations = context->reference() ? "" : context->activations().describe();
  info.dtype = tensor::dtype_name(traits.activation_dtype);
  info.threads = context->pool().size();
  info.vocab_size = traits.vocab_size;
  info.num_layers = traits.num_layers;
  info.hidden_size = traits.hidden_size;
  info.context_tokens = traits.max_positions;
  info.cache_tokens = traits.cache_tokens;
  info.file_bytes = checkpoint.file_bytes;
  info.weight_bytes = traits.weight_bytes;
  info.cache_bytes_per_token = traits.cache_bytes_per_token;
  info.eos_token_ids = checkpoint.eos_token_ids;
  info.bos_token_id = checkpoint.bos_token_id;
  info.tokenizer_json = std::move(checkpoint.tokenizer_json);
  info.tokenizer_config_json = checkpoint.tokenizer_config.dump();
  info.chat_template = std::move(checkpoint.chat_template);
  info.tool_chat_template = std::move(checkpoint.tool_chat_template);

  SchedulerOptions rows;
  rows.mode = mode;
  rows.max_rows = max_rows;
  rows.keep_prefixes = options.keep_prefixes.value_or(mode == Mode::kFast);
  scheduler = std::make_unique<Scheduler>(*model, rows, [this](const Sink& ended) {
    std::lock_guard lock(mutex);
    std::erase_if(live, [&](const auto& sink) { return sink.get() == &ended; });
  });
  info.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

int Engine::State::wanted() const {
  return static_cast<int>(
      std::count_if(live.begin(), live.end(), [](const auto& sink) { return !sink->cancelled(); }));
}

Status Engine::State::submit(const GenerateRequest& request, std::shared_ptr<Sink> sink) {
  SLUICE_TRY(auto plan, make_plan(request, info, mode));
  auto row = std::make_unique<Row>(request.prompt, std::move(plan), sink);
  std::lock_guard lock(mutex);
  if (const int queued = wanted() - max_rows; queued >= queue_limit) {
    return make_error(ErrorCode::kResourceExhausted,
                      "the queue is full: {} requests are waiting and {} may; try again later",
                      std::max(queued, 0),
                      queue_limit);
  }
  live.push_back(std::move(sink));
  incoming.push_back(std::move(row));
  if (!std::exchange(pumping, true)) thread.post([this] { pump(); });
  return {};
}

void Engine::State::pump() {
  std::vector<std::unique_ptr<Row>> arrived;
  {
    std::lock_guard lock(mutex);
    if (closed) return;
    arrived.swap(incoming);
  }
  for (auto& row : arrived) scheduler->add(std::move(row));
  bool more = false;
  try {
    more = scheduler->step();
  } catch (const std::exception& e) {
    // Not the fault of a row, those are caught: nothing that runs can be trusted any more.
    scheduler->end_all({ErrorCode::kInternal, fmt::format("the scheduler failed: {}", e.what())});
  }
  std::lock_guard lock(mutex);
  // Queued again and not looped here, so that other tasks of the thread get their turn.
  pumping = more || !incoming.empty();
  if (pumping) thread.post([this] { pump(); });
}

void Engine::State::close() {
  std::vector<std::unique_ptr<Row>> arrived;
  {
    std::lock_guard lock(mutex);
    closed = true;
    arrived.swap(incoming);
  }
  if (scheduler) {
    for (auto& row : arrived) scheduler->add(std::move(row));
    scheduler->end_all({ErrorCode::kInternal, "the engine shuts down"});
  }
  scheduler.reset();
  model.reset();
}

}  // namespace sluice::engine
