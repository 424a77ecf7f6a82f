// SentencePiece BPE keeps a score per piece; Hugging Face's BPE wants the list of merges.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace sluice::loader {

using TokenIds = std::unordered_map<std::string_view, int32_t>;
using Merge = std::pair<std::string_view, std::string_view>;

// Every way to join two pieces into a third, the best score first; of one piece's ways the longer
// left part first (the order that transformers' generate_merges has for scores). types:
// tokenizer.ggml.token_type; only normal pieces take part, since the others are matched whole.
// Splits are at character boundaries; the views point into tokens' text.
std::vector<Merge> merges_by_score(const std::vector<std::string_view>& tokens,
                                   const TokenIds& ids,
                                   const std::vector<float>& scores,
                                   const std::vector<int64_t>& types);

}  // namespace sluice::loader
