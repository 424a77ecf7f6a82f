// How the checkpoints of this family spell their tensors' names, found out from what is there.
#pragma once

#include <string>

#include "loader/weight_map.h"

namespace sluice::models {

struct Qwen35Names {
  std::string model;  // "language_model.model.", "model.language_model." or "model."
  std::string head;   // "language_model.lm_head" or "lm_head"
  std::string mtp;    // "language_model.mtp." or "mtp."; empty: the checkpoint has no such tensors
  // As Hugging Face stores it: convolutions [C, 1, K] and norms without their 1. MLX conversions
  // hold [C, K, 1] and whole norms. (mlx-lm's qwen3_5.sanitize tells them apart in the same way.)
  bool raw = false;

  std::string layer(int index) const { return fmt::format("{}layers.{}", model, index); }
  float norm_offset() const { return raw ? 1.0f : 0.0f; }

  static Qwen35Names find(const loader::WeightMap& weights);
};

}  // namespace sluice::models
