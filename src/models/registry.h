// From a checkpoint's config to the family that runs it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loader/checkpoint.h"
#include "models/model.h"

namespace sluice::models {

struct ModelOptions {
  // Activation and KV dtype. Unset: float32 for own CPU kernels (their only one); the checkpoint's
  // own dtype for the reference, as mlx-lm has it.
  std::optional<mx::Dtype> dtype;
  int cache_tokens = 0;  // positions of KV storage over all sequences; 0: min(max_positions, 8192)
};

// Takes the checkpoint's weights (every one is consumed or named in the error). context must
// outlive the model.
Result<std::unique_ptr<Model>> load_model(loader::Checkpoint& checkpoint,
                                          const kernels::Context& context,
                                          const ModelOptions& options);

// What a config says of a model, without its weights.
struct ConfigFacts {
  int num_layers = 0, hidden_size = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab_size = 0;
  int max_positions = 0;
  int attention_layers = 0;            // those whose cache grows by the token
  size_t slot_bytes_per_sequence = 0;  // of the others: float32, own kernels' layout
};

// Errors: those of load_model for the same config.
Result<ConfigFacts> config_facts(const nlohmann::json& config);

// model_type values that load_model knows, sorted.
std::vector<std::string> supported_model_types();

}  // namespace sluice::models
