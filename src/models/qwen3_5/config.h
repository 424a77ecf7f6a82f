// Configuration of the Gated-DeltaNet hybrids: qwen3_5, qwen3_5_moe and qwen3_next. Semantics as
// mlx-lm's models/{qwen3_5,qwen3_5_moe,qwen3_next}.py.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/rope/rope.h"

namespace sluice::models {

struct Qwen35Config {
  std::string model_type;  // as the registry knows it: "qwen3_5", "qwen3_5_moe", "qwen3_next"
  int hidden_size = 0;
  int num_layers = 0;
  int intermediate_size = 0;  // of the dense MLPs
  int vocab_size = 0;
  int max_positions = 0;
  float norm_eps = 1e-6f;
  std::optional<bool> tied_head;   // unset: tied iff the checkpoint has no lm_head
  std::vector<bool> linear_layer;  // per layer: gated delta (true) or full attention

  // Full attention.
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool attention_bias = false;
  kernels::RopeSpec rope;  // over the first partial_rotary_factor of head_dim

  // Gated delta.
  int key_heads = 0;
  int value_heads = 0;  // a multiple of key_heads
  int key_dim = 0;      // per head
  int value_dim = 0;    // per head
  int conv_kernel = 0;

  // Mixture of experts.
  std::vector<bool> moe_layer;  // per layer: experts (true) or a dense MLP
  int experts = 0;
  int experts_per_token = 0;
  int expert_intermediate_size = 0;
  int shared_intermediate_size = 0;
  bool normalize_scores = true;

  int mtp_layers = 0;  // layers of the multi-token prediction head, if the checkpoint has one

  bool packed_projections() const { return model_type == "qwen3_next"; }
  int delta_layers() const;  // how many layers are gated delta
  int key_size() const { return key_heads * key_dim; }
  int value_size() const { return value_heads * value_dim; }
  int conv_size() const { return 2 * key_size() + value_size(); }

  // config: the checkpoint's config.json; the text model's part of it is read from "text_config" if
  // there is one.
  static Result<Qwen35Config> from_json(const nlohmann::json& config);
};

}  // namespace sluice::models
