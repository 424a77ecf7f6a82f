#include "models/qwen3_5/names.h"

#include <algorithm>

namespace sluice::models {

Qwen35Names Qwen35Names::find(const loader::WeightMap& weights) {
  Qwen35Names names;
  names.model = "model.";
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    if (weights.contains(std::string(prefix) + "embed_tokens.weight")) names.model = prefix;
  }
  names.head = "lm_head";
  if (weights.contains("language_model.lm_head.weight")) names.head = "language_model.lm_head";
  for (const auto& tensor : weights.list()) {
    for (const char* prefix : {"language_model.mtp.", "mtp."}) {
      if (tensor.name.starts_with(prefix)) names.mtp = prefix;
    }
    if (tensor.name.ends_with("conv1d.weight") && tensor.shape.back() != 1) names.raw = true;
  }
  return names;
}

}  // namespace sluice::models
