// From a checkpoint's rope settings to the kernel's RopeSpec. Rotary variants as mlx-lm's
// rope_utils.py has them: default, linear, llama3 (Llama 3.1's wavelength blend), yarn (Peng et
// al., 2023).
#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "kernels/rope/rope.h"

namespace sluice::nn {

// Reads rope_theta, rope_scaling and rope_traditional, or rope_parameters as transformers 5 writes
// it, from config. default_theta applies where the checkpoint states none. An unknown variant or a
// missing parameter is an error that names it. freqs come out evaluated.
Result<kernels::RopeSpec> rope_from_config(const nlohmann::json& config,
                                           int head_dim,
                                           double default_theta);

}  // namespace sluice::nn
