// What every family on paged attention shares: the pass's checks, the page storage, commit, and the
// reference's row-by-row execution. A family adds its layers.
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "models/model.h"

namespace sluice::models {

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

  // tokens [N] through all layers; rows cover them -> the last layer's output [N, H], before the
  // final norm. Writes the rows' keys and values into storage_.
  virtual mx::array layers_forward(const std::vector<int32_t>& tokens,
                                   const std::vector<kernels::AttentionRow>& rows) = 0;
  // hidden [L, H] -> logits [L, V]: final norm and head.
  virtual mx::array head_forward(const mx::array& hidden) = 0;

  const kernels::Context& context_;
  ModelTraits traits_;
  std::vector<kernels::AttentionStorage> storage_;  // per layer

 private:
  Status check(const Pass& pass) const;
  PassOutput run(const std::vector<int32_t>& tokens, std::span<const Row> rows);

  std::unique_ptr<cache::PagePool> pool_;
};

}  // namespace sluice::models
