// What goes into the engine and what comes out: plain values, no MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sampling/params.h"
#include "sampling/sampler.h"

namespace sluice::engine {

// The two numeric modes of design section 1. kFast is under the exactness contract; kReference is
// mlx-lm's arithmetic and mlx-lm's way of cutting a prompt into passes.
enum class Mode { kFast, kReference };

struct EngineOptions {
  std::filesystem::path model;  // an MLX safetensors folder or a GGUF file
  Mode mode = Mode::kFast;
  // "cpu" or "reference"; empty: what the mode stands for. kReference allows "reference" only.
  std::string kernels;
  // Of the own linear kernels, per module kind (kernels/activation_plan.h): "int8", "f32",
  // "int8,head=f32", ...; empty: the default. kReference has no choice, so it must be empty.
  std::string activations;
  std::string isa;    // a name that kernels::parse_isa knows; empty: the best one here
  std::string dtype;  // "float32", "float16", "bfloat16"; empty: the backend's own choice
  int threads = 0;    // 0: what affinity and the cgroup's quota allow
  bool check_kernels = false;
  int cache_tokens = 0;  // positions of KV storage over all sequences; 0: min(context, 8192)
  // Requests that may share a pass; 0: 8, in reference mode 1, where no more are allowed since the
  // bits of a row would depend on its neighbours.
  int max_rows = 0;
  int queue_limit = 64;  // requests that may wait beyond those, >= 0
  // Ended sequences stay in the cache while there is room, and a prompt that begins with all tokens
  // of one computes only the rest. Unset: in fast mode, where it moves no bit; in reference mode it
  // may move some.
  std::optional<bool> keep_prefixes;
  // Called on the engine thread while weights come in; bytes. Must not call the engine.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// What a request or generation_config.json may say about sampling; unset: whoever comes next in
// the order request, generation_config.json, neutral values.
struct SamplingChoices {
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int> penalty_window;
  std::map<int32_t, double> logit_bias;
  std::optional<uint64_t> seed;  // unset: a random one, reported in the result
  std::optional<int> logprobs;   // see sampling::SamplingParams::logprobs
  sampling::LogprobsKind logprobs_kind = sampling::LogprobsKind::kRaw;
};

struct ModelInfo {
  std::string name;    // the file's or folder's
  std::string family;  // config's model_type
  std::string format;  // "gguf" or "mlx-safetensors"
  std::string kernels, isa, dtype;
  std::string activations;  // "int8", "int8,head=f32", ...; empty with the reference kernels
  int threads = 0;
  int vocab_size = 0;  // width of the logits
  int num_layers = 0;
  int hidden_size = 0;
  int context_tokens = 0;  // the context length that the config states
  int cache_tokens = 0;    // positions of KV storage
  uint64_t file_bytes = 0;
  uint64_t weight_bytes = 0;  // resident, in the form that the kernels use
  uint64_t cache_bytes_per_token = 0;
  double load_seconds = 0;

  std::vector<int32_t> eos_token_ids;  // union of config, generation_config and tokenizer, sorted
  std::optional<int32_t> bos_token_id;
  std::string tokenizer_json;
  std::string tokenizer_config_json;  // "{}" if the checkpoint has none
  std::optional<std::string> chat_template;
  std::optional<std::string> tool_chat_template;
  SamplingChoices sampling_defaults;  // what generation_config.json says
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  // not empty
  SamplingChoices sampling;
  std::optional<int> max_tokens;  // unset: until the context or the cache is full
  int min_tokens = 0;             // no end or stop token before this many tokens
  bool ignore_eos = false;        // the model's end tokens end nothing
  std::vector<int32_t> stop_token_ids;
  uint32_t prompt_index = 0;  // both enter the random numbers (sampling/gumbel.h)
  uint32_t choice_index = 0;
  // Tokens of one prefill pass, [1, 2048]; unset: 512, in reference mode 2048. In fast mode it
  // moves no bit of the result; in reference mode it may.
  std::optional<int> prefill_chunk;
  // False: compute the whole prompt, whatever the cache has of it.
  bool reuse_prefix = true;
};

struct TokenEvent {
  int32_t token = 0;
  int index = 0;            // 0 for the first token of the output
  bool stop_token = false;  // an end or stop token: it ends the output and is no part of its text
  std::optional<float> logprob;
  std::span<const sampling::TokenLogprob> top;  // valid during the call
};

// See Sink::on_token.
using TokenCallback = std::function<bool(const TokenEvent&)>;

enum class FinishReason {
  kStop,       // an end token, a stop token, or the callback said so
  kLength,     // max_tokens, or the context or cache is full
  kCancelled,  // the caller asked for it
};

const char* finish_reason_name(FinishReason reason);  // "stop", "length", "cancelled"

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;  // of those, found in the cache
  int completion_tokens = 0;
};

struct Timings {
  double prefill_seconds = 0;  // up to the first token
  double decode_seconds = 0;   // from the first token to the last
};

struct GenerateResult {
  std::vector<int32_t> tokens;  // everything drawn, a stop token at the end included
  FinishReason finish_reason = FinishReason::kStop;
  std::optional<int32_t> stop_token;  // the token that ended it, if one did
  uint64_t seed = 0;
  sampling::SamplingParams sampling;  // as resolved
  Usage usage;
  Timings timings;
};

// What the engine has to do right now.
struct Load {
  int running = 0;          // requests that a step may advance
  int queued = 0;           // accepted and waiting
  int queue_limit = 0;      // EngineOptions::queue_limit
  int64_t preemptions = 0;  // times that a row gave up its pages to others, since load()
};

// One op's record in check mode and how often its own kernel ran.
struct KernelReport {
  std::string op;
  int64_t kernel_runs = 0;
  int64_t checked_calls = 0;
  double max_abs_error = 0;
  double max_reference = 0;  // largest absolute value of the reference
};

}  // namespace sluice::engine
