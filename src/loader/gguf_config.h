// What a GGUF file of a known architecture amounts to in Hugging Face's terms: config.json and
// tensor names. No MLX. Key names: ggml's docs/gguf.md and gguf-py's constants.py; tensor names and
// the q/k row order: llama.cpp's convert_hf_to_gguf.py.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/gguf_file.h"

namespace sluice::loader {

// general.architecture values that config_from_gguf knows.
std::vector<std::string> supported_gguf_architectures();

// The config.json of the model, without special tokens. vocab_size is the embedding's height; the
// head is tied iff output.weight is absent; attention_bias says whether there are q/k/v biases.
// rope_scaling: linear and yarn from the metadata, llama3 from the rope_freqs tensor (its
// parameters are recovered and checked against every value of it). Errors: kUnsupported for another
// architecture (the known ones are listed) and for metadata that changes the computation in a way
// that no known family has; kCorruptFile for what is missing, of the wrong type or contradictory.
Result<nlohmann::json> config_from_gguf(const GgufFile& file);

// How one GGUF tensor appears to the model.
struct GgufTensorRole {
  std::string name;               // Hugging Face's; the file's own if it is no tensor of the family
  int interleaved_head_rows = 0;  // see StoredTensor
  bool folded_into_config = false;  // rope_freqs: the config says it all
};
// config: what config_from_gguf gave for this file.
Result<GgufTensorRole> gguf_tensor_role(const GgufTensor& tensor,
                                        std::string_view architecture,
                                        const nlohmann::json& config);

}  // namespace sluice::loader
