#include "engine/engine_state.h"

#include <algorithm>
#include <chrono>

#include "engine/sampling_defaults.h"
#include "loader/checkpoint.h"
#include "tensor/checks.h"

namespace sluice::engine {
namespace {

// mlx-lm's prefill_step_size; larger passes gain nothing and hold more transient memory.
constexpr int kMaxPrefillChunk = 2048;
constexpr int kFastPrefillChunk = 512;

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

std::vector<int32_t> merged(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

Status check_ids(const char* what, const std::vector<int32_t>& ids, int vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{} {} is {}; the model's token ids are in [0, {}]",
                        what,
                        i,
                        ids[i],
                        vocab_size - 1);
    }
  }
  return {};
}

bool extends(std::span<const int32_t> prompt, const std::vector<int32_t>& tokens) {
  return tokens.size() < prompt.size() && std::equal(tokens.begin(), tokens.end(), prompt.begin());
}

}  // namespace

void Session::State::reset() {
  cached.state.reset();
  cached.tokens.clear();
  num_cached = 0;
}

Status Engine::State::open(const EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SLUICE_TRY(const auto for_context, context_options(options));
  SLUICE_TRY(const auto for_model, model_options(options));
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
  info.load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {};
}

void Engine::State::close() {
  for (auto* session : sessions) session->reset();
  sessions.clear();
  model.reset();
}

Result<GenerationPlan> Engine::State::make_plan(const GenerateRequest& request) const {
  if (request.prompt.empty()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the prompt is empty; give at least one token to start from");
  }
  SLUICE_TRY_STATUS(check_ids("prompt token", request.prompt, info.vocab_size));
  SLUICE_TRY_STATUS(check_ids("stop_token_ids entry", request.stop_token_ids, info.vocab_size));
  GenerationPlan plan;
  plan.prompt = request.prompt;
  SLUICE_TRY(plan.sampling,
             resolve_sampling(request.sampling, info.sampling_defaults, info.vocab_size));

  const int64_t limit = std::min(info.context_tokens, info.cache_tokens);
  const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
  if (request.max_tokens && *request.max_tokens < 1) {
    return make_error(ErrorCode::kInvalidArgument,
                      "max_tokens is {}; it must be at least 1",
                      *request.max_tokens);
  }
  const int64_t wanted = prompt_tokens + request.max_tokens.value_or(1);
  if (wanted > limit) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the prompt's {} tokens and max_tokens {} make {}, but at most {} fit (the "
                      "model's context is {}, the cache holds {}); shorten one{}",
                      prompt_tokens,
                      request.max_tokens.value_or(1),
                      wanted,
                      limit,
                      info.context_tokens,
                      info.cache_tokens,
                      info.cache_tokens < info.context_tokens ? " or enlarge the cache" : "");
  }
  plan.max_tokens = request.max_tokens.value_or(static_cast<int>(limit - prompt_tokens));
  if (request.min_tokens < 0 || request.min_tokens > plan.max_tokens) {
    return make_error(ErrorCode::kInvalidArgument,
                      "min_tokens is {}; it must be in [0, {}], the largest number of tokens here",
                      request.min_tokens,
                      plan.max_tokens);
  }
  plan.min_tokens = request.min_tokens;
  const int chunk = request.prefill_chunk.value_or(mode == Mode::kReference ? kMaxPrefillChunk
                                                                            : kFastPrefillChunk);
  if (chunk < 1 || chunk > kMaxPrefillChunk) {
    return make_error(ErrorCode::kInvalidArgument,
                      "prefill_chunk is {}; it must be in [1, {}]",
                      chunk,
                      kMaxPrefillChunk);
  }
  // The session is not known yet: one cut stands for the chunk size.
  plan.cuts = {chunk};
  plan.banned_ids = merged(info.eos_token_ids, request.stop_token_ids);
  plan.stop_ids = request.ignore_eos ? request.stop_token_ids : plan.banned_ids;
  plan.prompt_index = request.prompt_index;
  plan.choice_index = request.choice_index;
  plan.cancel = request.cancel;
  return plan;
}

void Engine::State::make_room(const cache::SequenceState& sequence,
                              int positions,
                              const Session::State* keep) {
  auto pages_of = [](const Session::State& session) {
    return session.cached.state ? static_cast<int>(session.cached.state->pages().size()) : 0;
  };
  int held = 0;
  for (const auto* session : sessions) held += pages_of(*session);
  const int total = model->new_sequence()->missing_pages(info.cache_tokens);
  for (auto* session : sessions) {
    if (held + sequence.missing_pages(positions) <= total) return;
    if (session == keep) continue;
    held -= pages_of(*session);
    session->reset();
  }
}

Result<GenerateResult> Engine::State::generate(const GenerateRequest& request,
                                               const TokenCallback& on_token,
                                               Session::State* session) {
  SLUICE_TRY(auto plan, make_plan(request));
  CachedSequence alone;
  CachedSequence& sequence = session ? session->cached : alone;
  if (session)
    sessions.splice(sessions.end(), sessions, std::find(sessions.begin(), sessions.end(), session));
  if (!sequence.state || !extends(plan.prompt, sequence.tokens)) {
    sequence = {model->new_sequence(), {}};
  }
  const int uncomputed = static_cast<int>(plan.prompt.size() - sequence.tokens.size());
  plan.cuts = prefill_cuts(uncomputed, plan.cuts.front(), mode);
  make_room(*sequence.state, uncomputed + plan.max_tokens, session);

  Generation generation(*model, sampler, sequence, plan);
  try {
    auto result = generation.run(on_token);
    if (session && !result.ok()) session->reset();
    if (session) session->num_cached = static_cast<int>(session->cached.tokens.size());
    return result;
  } catch (...) {
    if (session) session->reset();
    throw;
  }
}

}  // namespace sluice::engine
