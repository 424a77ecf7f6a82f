// What a GGUF's tokenizer.ggml.pre stands for: the parts of the model's tokenizer.json that decide
// how text is cut before byte-level BPE.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::loader {

struct PreTokenizer {
  nlohmann::json normalizer;     // null: none
  nlohmann::json pre_tokenizer;  // byte-level included
  // A piece that is a token as a whole is taken as that, whatever the merges say.
  bool ignore_merges = false;
  // Whether a file without tokenizer.ggml.add_bos_token means yes.
  bool adds_bos = false;
};

// nullopt for an unknown name.
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);

// The known names, in the table's order.
std::vector<std::string> known_pre_tokenizers();

}  // namespace sluice::loader
