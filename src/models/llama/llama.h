// The plain pre-norm transformer (Touvron et al., 2023) and its near kin.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "loader/checkpoint.h"
#include "models/llama/config.h"
#include "models/packed_model.h"
#include "models/registry.h"
#include "nn/attention_block.h"
#include "nn/mlp.h"

namespace sluice::models {

class LlamaModel final : public PackedModel {
 public:
  static Result<std::unique_ptr<Model>> load(loader::Checkpoint& checkpoint,
                                             const kernels::Context& context,
                                             const ModelOptions& options);
  static Result<ConfigFacts> facts(const nlohmann::json& config);

 private:
  struct Layer {
    mx::array input_norm, post_attention_norm;  // [H]
    nn::AttentionBlock attention;
    nn::GatedMlp mlp;
  };

  using PackedModel::PackedModel;
  Status read_weights(loader::Checkpoint& checkpoint, std::optional<mx::Dtype> dtype);

  mx::array layers_forward(const std::vector<int32_t>& tokens, const PassRows& rows) override;
  mx::array head_forward(const mx::array& hidden) override;

  LlamaConfig config_;
  kernels::LinearWeight embedding_;
  std::optional<kernels::LinearWeight> head_;  // none: tied to the embedding
  std::vector<Layer> layers_;
  std::optional<mx::array> final_norm_;  // [H]
};

}  // namespace sluice::models
