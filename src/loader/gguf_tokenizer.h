// A GGUF file's vocabulary as Hugging Face's tokenizer.json, so that one tokenizer implementation
// serves both formats. No MLX. The metadata keeps tokens, merges or scores, token types and the
// name of the pre-tokenizer; the rest (regexes, normalizer, decoder) is what the models of that
// name have in their own tokenizer.json, see gguf_pretokenizer.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/gguf_metadata.h"

namespace sluice::loader {

struct GgufTokenizer {
  std::string tokenizer_json;
  // bos_token, eos_token, pad_token, unk_token (strings), add_bos_token, add_eos_token.
  nlohmann::json tokenizer_config;
  std::optional<std::string> chat_template;
  std::optional<std::string> tool_chat_template;
  std::vector<int32_t> eos_token_ids;  // eos, eot and eom, sorted
  std::optional<int32_t> bos_token_id;
  bool add_bos = false;  // tokenizer_json's post-processor does it
};

// Errors: kUnsupported for a tokenizer kind or pre-tokenizer that sluice does not know, by name;
// kCorruptFile for token lists that contradict each other.
Result<GgufTokenizer> tokenizer_from_gguf(const GgufMetadata& metadata);

}  // namespace sluice::loader
