#include "engine/sampling_defaults.h"

#include <algorithm>
#include <limits>
#include <random>

#include "base/config_reader.h"

namespace sluice::engine {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Result<SamplingChoices> sampling_defaults(const nlohmann::json& generation_config) {
  SamplingChoices choices;
  if (generation_config.is_null()) return choices;
  ConfigReader reader(generation_config, "generation_config.json");
  auto number = [&](const char* key, std::optional<double>& value) {
    if (reader.has(key)) value = reader.number(key);
  };
  number("temperature", choices.temperature);
  number("top_p", choices.top_p);
  number("min_p", choices.min_p);
  number("repetition_penalty", choices.repetition_penalty);
  number("presence_penalty", choices.presence_penalty);
  number("frequency_penalty", choices.frequency_penalty);
  if (reader.has("top_k")) {
    choices.top_k = reader.integer("top_k", 0, std::numeric_limits<int>::max());
  }
  if (reader.has("do_sample")) {
    if (!reader.boolean("do_sample")) {
      choices.temperature = 0.0;
    } else if (!choices.temperature) {
      choices.temperature = 1.0;
    }
  }
  SLUICE_TRY_STATUS(reader.status());
  return choices;
}

Result<sampling::SamplingParams> resolve_sampling(const SamplingChoices& request,
                                                  const SamplingChoices& defaults,
                                                  int vocab_size) {
  sampling::SamplingParams params;
  auto pick = [](const auto& asked, const auto& usual, auto neutral) {
    return asked.value_or(usual.value_or(neutral));
  };
  params.temperature = pick(request.temperature, defaults.temperature, 0.0);
  // A file's top_k beyond the vocabulary filters nothing; a request's is an error.
  auto usual_top_k = defaults.top_k;
  if (usual_top_k) usual_top_k = std::min(*usual_top_k, vocab_size);
  params.top_k = pick(request.top_k, usual_top_k, params.top_k);
  params.top_p = pick(request.top_p, defaults.top_p, params.top_p);
  params.min_p = pick(request.min_p, defaults.min_p, params.min_p);
  params.repetition_penalty =
      pick(request.repetition_penalty, defaults.repetition_penalty, params.repetition_penalty);
  params.presence_penalty =
      pick(request.presence_penalty, defaults.presence_penalty, params.presence_penalty);
  params.frequency_penalty =
      pick(request.frequency_penalty, defaults.frequency_penalty, params.frequency_penalty);
  params.penalty_window =
      pick(request.penalty_window, defaults.penalty_window, params.penalty_window);
  params.logit_bias = request.logit_bias;
  params.seed = request.seed ? *request.seed : random_seed();
  params.logprobs = request.logprobs;
  params.logprobs_kind = request.logprobs_kind;
  SLUICE_TRY_STATUS(sampling::validate(params, vocab_size));
  return params;
}

}  // namespace sluice::engine
