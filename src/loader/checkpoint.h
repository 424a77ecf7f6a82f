// Opens a model from disk: an MLX safetensors folder or a GGUF file, told apart by what is there.
// Both give the same: a Hugging Face config, the weights under Hugging Face names, and the
// tokenizer as tokenizer.json text. No network.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/weight_map.h"

namespace sluice::loader {

struct Checkpoint {
  // Hugging Face's config.json; for GGUF the one that the metadata amounts to (gguf_config.h).
  // Always an object with a string "model_type".
  nlohmann::json config;
  // generation_config.json, {} if there is none (GGUF has none).
  nlohmann::json generation_config;
  WeightMap weights;

  std::string tokenizer_json;       // empty only if OpenOptions::tokenizer is false
  nlohmann::json tokenizer_config;  // {} if absent; synthesised for GGUF
  // The default template and the one for requests with tools, where the checkpoint has two.
  std::optional<std::string> chat_template;
  std::optional<std::string> tool_chat_template;

  // Sorted union of what config, generation_config and the tokenizer name; GGUF: eos, eot, eom.
  std::vector<int32_t> eos_token_ids;
  std::optional<int32_t> bos_token_id;
  // Whether encoding with special tokens begins with bos_token_id (tokenizer_json does it itself).
  bool add_bos = false;

  std::string format;          // "mlx-safetensors" or "gguf"
  std::filesystem::path path;  // as given
  uint64_t file_bytes = 0;     // size of all weight files
};

struct OpenOptions {
  // Called as weights are taken, on the taking thread (see WeightMap::Progress).
  WeightMap::Progress progress;
  // False leaves the tokenizer's fields empty and asks for no tokenizer files: for uses of weights
  // alone.
  bool tokenizer = true;
};

// path: a folder with config.json, tokenizer.json and *.safetensors, or a .gguf file, or a folder
// that holds exactly one .gguf and no config.json. Reads headers and the tokenizer only; weights
// are mapped and come in as they are taken. The files must not be truncated while the checkpoint or
// an array of it lives. Errors: kNotFound (nothing there, a file missing), kCorruptFile (a file
// breaks its format), kUnsupported (a tensor type, quantization mode, architecture or tokenizer
// that sluice does not know, by name), kIo.
Result<Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                   const OpenOptions& options = {});

}  // namespace sluice::loader
