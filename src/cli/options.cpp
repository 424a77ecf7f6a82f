#include "cli/options.h"

#include <charconv>

namespace sluice::cli {
namespace {

// "ID=BIAS".
Result<std::pair<int32_t, double>> parse_bias(const std::string& text) {
  const auto equals = text.find('=');
  const char* end = text.data() + text.size();
  int32_t id = 0;
  double bias = 0;
  if (equals != std::string::npos) {
    const auto of_id = std::from_chars(text.data(), text.data() + equals, id);
    const auto of_bias = std::from_chars(text.data() + equals + 1, end, bias);
    if (of_id.ec == std::errc() && of_id.ptr == text.data() + equals && of_bias.ec == std::errc() &&
        of_bias.ptr == end) {
      return std::pair{id, bias};
    }
  }
  return make_error(
      ErrorCode::kInvalidArgument, "--logit-bias '{}': write it as ID=BIAS, such as 42=-5", text);
}

}  // namespace

void ModelFlags::add_to(CLI::App& app) {
  app.add_option("-m,--model", model, "A .gguf file or an MLX safetensors folder")
      ->envname("SLUICE_MODEL")
      ->required();
  auto* group = app.add_option_group("Execution");
  group->add_option("--mode", mode, "fast: own kernels, exact under batching; reference: mlx-lm's")
      ->check(CLI::IsMember({"fast", "reference"}))
      ->capture_default_str();
  group->add_option("--kernels", kernels, "Force a kernel backend: cpu or reference");
  group->add_option(
      "--isa", isa, "Force an instruction set variant: one of what inspect --machine lists");
  group->add_option("--activations",
                    activations,
                    "What linear layers make of their input: int8 or f32, with exceptions by kind "
                    "of module, such as int8,head=f32 (qkv, out, gate_up, down, head)");
  group->add_option("--dtype", dtype, "Activation dtype: float32, float16 or bfloat16");
  group->add_option("--threads", threads, "Threads; 0: what affinity and cgroup allow")
      ->capture_default_str();
  group
      ->add_option("--cache-tokens",
                   cache_tokens,
                   "Positions of key/value storage; 0: the context, at most 8192")
      ->capture_default_str();
  group->add_flag("--check-kernels",
                  check_kernels,
                  "Run the reference beside every kernel; the largest errors go to stderr");
}

engine::EngineOptions ModelFlags::engine_options() const {
  engine::EngineOptions options;
  options.model = model;
  options.mode = mode == "reference" ? engine::Mode::kReference : engine::Mode::kFast;
  options.kernels = kernels;
  options.isa = isa;
  options.activations = activations;
  options.dtype = dtype;
  options.threads = threads;
  options.cache_tokens = cache_tokens;
  options.check_kernels = check_kernels;
  return options;
}

void GenerationFlags::add_to(CLI::App& app, int default_max_tokens) {
  auto* choice = app.add_option_group(
      "Sampling", "Unset values come from the model's generation_config.json, else greedy");
  choice->add_option("--temperature,--temp", sampling.temperature, "0: greedy");
  choice->add_option("--top-k", sampling.top_k, "Keep the K most likely tokens; 0: off");
  choice->add_option("--top-p", sampling.top_p, "Keep the most likely tokens of mass P; 1: off");
  choice->add_option("--min-p", sampling.min_p, "Keep tokens of at least P times the top; 0: off");
  choice->add_option("--repetition-penalty", sampling.repetition_penalty, "1: off");
  choice->add_option("--presence-penalty", sampling.presence_penalty, "0: off");
  choice->add_option("--frequency-penalty", sampling.frequency_penalty, "0: off");
  choice->add_option(
      "--penalty-window", sampling.penalty_window, "Tokens the penalties look at; -1: all");
  choice->add_option("--logit-bias", logit_bias, "ID=BIAS, added to a token's logit; repeatable");
  choice->add_option("--seed", sampling.seed, "Random by default");

  auto* limits = app.add_option_group("Limits");
  limits->add_option("-n,--max-tokens",
                     max_tokens,
                     fmt::format("Most tokens of an answer [{} or what fits]", default_max_tokens));
  limits->add_option("--min-tokens", min_tokens, "No end before this many tokens")
      ->capture_default_str();
  limits->add_flag("--ignore-eos", ignore_eos, "Go on past the model's end tokens");
  limits->add_option("--stop", stop, "End before this text; repeatable");
  limits->add_option("--stop-token", stop_token_ids, "End at this token id; repeatable");
  limits->add_option("--prefill-chunk", prefill_chunk, "Prompt tokens of one pass, 1 to 2048");
  app.add_flag("--stats", stats, "Token counts and speed on stderr");
}

Result<engine::GenerateRequest> GenerationFlags::request() const {
  engine::GenerateRequest request;
  request.sampling = sampling;
  for (const auto& text : logit_bias) {
    SLUICE_TRY(const auto bias, parse_bias(text));
    request.sampling.logit_bias[bias.first] = bias.second;
  }
  for (const auto& text : stop) {
    if (text.empty()) {
      return make_error(ErrorCode::kInvalidArgument, "--stop: an empty text would end at once");
    }
  }
  request.max_tokens = max_tokens;
  request.min_tokens = min_tokens;
  request.ignore_eos = ignore_eos;
  request.stop_token_ids.assign(stop_token_ids.begin(), stop_token_ids.end());
  request.prefill_chunk = prefill_chunk;
  return request;
}

}  // namespace sluice::cli
