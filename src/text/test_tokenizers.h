// Small tokenizers for the tests of src/text: every byte is a token, a few merges, two control
// tokens.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "text/tokenizer.h"

namespace sluice::text::testing {

inline std::string utf8(uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) {
    return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
  }
  return {static_cast<char>(0xe0 | code >> 12),
          static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

// GPT-2's printable stand-in for a byte.
inline std::string byte_level_char(int byte) {
  const auto printable = [](int b) {
    return (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  };
  if (printable(byte)) return utf8(byte);
  uint32_t code = 0x100;
  for (int b = 0; b < byte; ++b) code += !printable(b);
  return utf8(code);
}

inline nlohmann::json control_tokens(int first_id) {
  nlohmann::json list = nlohmann::json::array();
  for (const char* content : {"<|bos|>", "<|end|>"}) {
    list.push_back({{"id", first_id++},
                    {"content", content},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  }
  return list;
}

constexpr int32_t kBos = 258;
constexpr int32_t kEnd = 259;

// Ids 0-255 are the bytes, 256 is "he", 257 "hel", then <|bos|> and <|end|>.
inline nlohmann::json byte_level_json() {
  nlohmann::json vocab;
  for (int byte = 0; byte < 256; ++byte) vocab[byte_level_char(byte)] = byte;
  vocab["he"] = 256;
  vocab["hel"] = 257;
  const nlohmann::json byte_level = {{"type", "ByteLevel"},
                                     {"add_prefix_space", false},
                                     {"trim_offsets", true},
                                     {"use_regex", true}};
  const nlohmann::json bos = {{"id", "<|bos|>"}, {"ids", {kBos}}, {"tokens", {"<|bos|>"}}};
  return {{"version", "1.0"},
          {"added_tokens", control_tokens(kBos)},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"decoder", byte_level},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single",
             {{{"SpecialToken", {{"id", "<|bos|>"}, {"type_id", 0}}}},
              {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
            {"pair", nlohmann::json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}})},
            {"special_tokens", {{"<|bos|>", bos}}}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocab},
            {"merges", {"h e", "he l"}}}}};
}

// SentencePiece's kind: ids 0-255 are <0x00> to <0xFF>, then "▁", "a", "▁a" and the control tokens.
constexpr int32_t kSpmSpace = 256;
constexpr int32_t kSpmA = 257;
constexpr int32_t kSpmSpaceA = 258;
constexpr int32_t kSpmBos = 259;
inline nlohmann::json sentencepiece_json() {
  nlohmann::json vocab;
  char name[8];
  for (int byte = 0; byte < 256; ++byte) {
    std::snprintf(name, sizeof(name), "<0x%02X>", byte);
    vocab[name] = byte;
  }
  vocab["▁"] = kSpmSpace;
  vocab["a"] = kSpmA;
  vocab["▁a"] = kSpmSpaceA;
  const nlohmann::json to_space = {
      {"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  const nlohmann::json from_space = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  const nlohmann::json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"version", "1.0"},
          {"added_tokens", control_tokens(kSpmBos)},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, from_space}}}},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders", {to_space, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}, strip}}}},
          {"post_processor", nullptr},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", vocab},
            {"merges", {"▁ a"}}}}};
}

inline Tokenizer byte_level() {
  return Tokenizer::from_json(byte_level_json().dump()).value();
}
inline Tokenizer sentencepiece() {
  return Tokenizer::from_json(sentencepiece_json().dump()).value();
}

}  // namespace sluice::text::testing
