// Configuration of the plain transformer family: llama (and smollm2, which is one), mistral, qwen2,
// qwen3. Semantics as mlx-lm's models/{llama,qwen2,qwen3}.py.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/rope/rope.h"

namespace sluice::models {

struct LlamaConfig {
  std::string model_type;
  int hidden_size = 0;
  int num_layers = 0;
  int intermediate_size = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int max_positions = 0;
  float norm_eps = 1e-6f;
  bool qkv_bias = false;
  bool out_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;
  std::optional<bool> tied_head;  // unset: tied iff the checkpoint has no lm_head
  kernels::RopeSpec rope;

  static Result<LlamaConfig> from_json(const nlohmann::json& config);
};

}  // namespace sluice::models
