// From what a request and generation_config.json say to complete sampling parameters.
#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "engine/types.h"

namespace sluice::engine {

// The sampling fields of generation_config.json. do_sample false means temperature 0; do_sample
// true without a temperature means 1. An error names a value of the wrong type.
Result<SamplingChoices> sampling_defaults(const nlohmann::json& generation_config);

// Field by field the request's value, else the default's, else the neutral one; but where nobody
// gives a temperature it is 0, greedy, as in mlx-lm. A missing seed becomes a random one. The
// result is validated: kInvalidArgument names the field.
Result<sampling::SamplingParams> resolve_sampling(const SamplingChoices& request,
                                                  const SamplingChoices& defaults,
                                                  int vocab_size);

}  // namespace sluice::engine
