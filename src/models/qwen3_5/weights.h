// Reads the parts of a layer out of a checkpoint, whatever its spelling. After an error of the
// reader the results are nullopt; ask it for its status.
#pragma once

#include <optional>
#include <string>

#include "models/qwen3_5/qwen3_5.h"
#include "nn/weight_reader.h"

namespace sluice::models {

class Qwen35WeightReader {
 public:
  Qwen35WeightReader(const kernels::Context& context,
                     nn::WeightReader& reader,
                     const Qwen35Config& config,
                     const Qwen35Names& names)
      : context_(context), reader_(reader), config_(config), names_(names) {}

  // linear: the mixer is a gated delta block, else attention.
  std::optional<Qwen35Layer> layer(const std::string& path, bool linear);
  std::optional<Qwen35Mtp> mtp();

 private:
  std::optional<nn::GatedDeltaBlock> gated_delta(const std::string& path);
  std::optional<nn::AttentionBlock> attention(const std::string& path);
  std::optional<nn::GatedMlp> mlp(const std::string& path);
  std::optional<kernels::ConvWeight> convolution(const std::string& path);
  std::optional<mx::array> norm(const std::string& path, int size);

  const kernels::Context& context_;
  nn::WeightReader& reader_;
  const Qwen35Config& config_;
  const Qwen35Names& names_;
};

}  // namespace sluice::models
