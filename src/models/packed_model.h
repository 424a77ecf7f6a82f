// What every family on paged attention and gated-delta slots shares: the pass's checks, the
// storage, commit, and the reference's row-by-row execution. A family adds its layers.
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "models/model.h"
#include "models/registry.h"
#include "nn/gated_delta_block.h"

namespace sluice::models {

// The dtype to cast weights to; none: as the checkpoint has them. An error for what the own kernels
// cannot compute in.
Result<std::optional<mx::Dtype>> computing_dtype(const kernels::Context& context,
                                                 const ModelOptions& options,
                                                 const loader::Checkpoint& checkpoint);

// Positions of KV storage: what the options ask for, else the whole context or 8192 of it.
int cache_positions(const ModelOptions& options, int max_positions);

// The rows of a pass as layers take them.
struct PassRows {
  std::vector<kernels::AttentionRow> attention;
  std::vector<nn::GatedDeltaRow> delta;  // without their slots

  // The rows with their slots of the model's i-th gated-delta layer.
  std::vector<nn::GatedDeltaRow> delta_layer(int i) const;

  std::vector<cache::SequenceState*> sequences;
};

class PackedModel : public Model {
 public:
  const ModelTraits& traits() const override { return traits_; }
  std::unique_ptr<cache::SequenceState> new_sequence() override;
  Result<PassOutput> forward(const Pass& pass) override;
  Status commit(std::span<const Row> rows, std::span<const int> keep) override;

 protected:
  explicit PackedModel(const kernels::Context& context) : context_(context) {}

  // One pool per attention layer, all of the same geometry and of `positions` positions.
  void allocate_storage(
      int layers, int positions, int kv_heads, int key_dim, int value_dim, mx::Dtype dtype);

  // Every sequence gets slots of this layout. Call before the first new_sequence().
  void allocate_slots(const cache::GatedDeltaLayout& layout);

  // tokens [N] through all layers; rows cover them -> the last layer's output [N, H], before the
  // final norm. Writes the rows' keys and values into storage_ and moves their slots.
  virtual mx::array layers_forward(const std::vector<int32_t>& tokens, const PassRows& rows) = 0;
  // hidden [L, H] -> logits [L, V]: final norm and head.
  virtual mx::array head_forward(const mx::array& hidden) = 0;

  const kernels::Context& context_;
  ModelTraits traits_;
  std::vector<kernels::AttentionStorage> storage_;  // per layer

 private:
  Status check(const Pass& pass) const;
  PassOutput run(const std::vector<int32_t>& tokens, std::span<const Row> rows);

  std::unique_ptr<cache::PagePool> pool_;
  cache::RecurrentStorage recurrent_;
};

}  // namespace sluice::models
