// The Gated-DeltaNet hybrids: qwen3_5 (and its text-only spelling) and qwen3_next with dense MLPs.
// Pre-norm layers whose mixer is a gated delta rule or full attention with an output gate.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "loader/checkpoint.h"
#include "models/packed_model.h"
#include "models/qwen3_5/config.h"
#include "models/qwen3_5/names.h"
#include "models/registry.h"
#include "nn/attention_block.h"
#include "nn/gated_delta_block.h"
#include "nn/mlp.h"

namespace sluice::models {

struct Qwen35Layer {
  mx::array input_norm, post_attention_norm;  // [H]
  std::variant<nn::GatedDeltaBlock, nn::AttentionBlock> mixer;
  nn::GatedMlp mlp;
};

// The multi-token prediction head as the checkpoint holds it, for a drafter: fc over [norm of the
// next token's embedding, norm of the hidden row], attention layers, norm; the model's own head.
struct Qwen35Mtp {
  mx::array embedding_norm, hidden_norm;  // [H]
  kernels::LinearWeight fc;               // [H, 2 H]
  std::vector<Qwen35Layer> layers;
  mx::array norm;  // [H]
};

class Qwen35Model final : public PackedModel {
 public:
  static Result<std::unique_ptr<Model>> load(loader::Checkpoint& checkpoint,
                                             const kernels::Context& context,
                                             const ModelOptions& options);
  static Result<ConfigFacts> facts(const nlohmann::json& config);

  const Qwen35Config& config() const { return config_; }
  // One layer alone: x [N, H] -> [N, H]. Writes storage and slots as a pass does.
  mx::array layer_forward(int index, const mx::array& x, const PassRows& rows);
  // Null: the checkpoint has none.
  const Qwen35Mtp* mtp() const { return mtp_ ? &*mtp_ : nullptr; }

 private:
  using PackedModel::PackedModel;
  Status read_weights(loader::Checkpoint& checkpoint, std::optional<mx::Dtype> dtype);

  mx::array layers_forward(const std::vector<int32_t>& tokens, const PassRows& rows) override;
  mx::array head_forward(const mx::array& hidden) override;
  void evaluate_layer(const mx::array& hidden, int index, const PassRows& rows);

  Qwen35Config config_;
  kernels::LinearWeight embedding_;
  std::optional<kernels::LinearWeight> head_;  // none: tied to the embedding
  std::vector<Qwen35Layer> layers_;
  std::vector<int> place_;  // per layer: index among those of its kind (storage_ or slots)
  std::optional<mx::array> final_norm_;  // [H]
  std::optional<Qwen35Mtp> mtp_;
};

}  // namespace sluice::models
