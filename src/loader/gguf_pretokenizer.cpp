#include "loader/gguf_pretokenizer.h"

#include <initializer_list>
#include <utility>

namespace sluice::loader {

namespace {

using nlohmann::json;

// The patterns are data: what the models' own tokenizer.json has, character for character, since
// token ids depend on it.
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepseekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr const char* kDeepseekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr const char* kDeepseekCjk = R"([一-龥ࠀ-一가-퟿]+)";

json split(const char* regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", regex}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json digits(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}

// use_regex: cut by GPT-2's pattern too.
json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

json sequence(std::initializer_list<json> parts) {
  json list = json::array();
  for (const auto& part : parts) list.push_back(part);
  return {{"type", "Sequence"}, {"pretokenizers", std::move(list)}};
}

json nfc() {
  return {{"type", "NFC"}};
}

PreTokenizer gpt2() {
  return {nullptr, byte_level(true)};
}
PreTokenizer mpt() {
  return {nfc(), byte_level(true)};
}
PreTokenizer smollm() {
  return {nullptr, sequence({digits(true), byte_level(true)})};
}
PreTokenizer command_r() {
  return {nfc(), sequence({digits(true), byte_level(true)})};
}
PreTokenizer llama3() {
  return {nullptr, sequence({split(kLlama3), byte_level(false)}), true, true};
}
PreTokenizer qwen2() {
  return {nfc(), sequence({split(kQwen2), byte_level(false)})};
}
PreTokenizer qwen35() {
  return {nfc(), sequence({split(kQwen35), byte_level(false)})};
}
PreTokenizer tekken() {
  return {nullptr, sequence({split(kTekken), byte_level(false)}), true, true};
}
PreTokenizer falcon() {
  return {nullptr,
          sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                    byte_level(true),
                    digits(false),
                    split("[0-9][0-9][0-9]")})};
}
PreTokenizer deepseek_llm() {
  return {nullptr,
          sequence({split("[\r\n]"),
                    split(kDeepseekLetters),
                    split(kDeepseekPunctuation),
                    split(R"(\s+$)"),
                    split(kDeepseekCjk),
                    digits(true),
                    byte_level(false)})};
}
PreTokenizer deepseek_coder() {
  return {nullptr,
          sequence({split("[\r\n]"),
                    split(R"(\s?\p{L}+)"),
                    split(R"(\s?\p{P}+)"),
                    split(kDeepseekCjk),
                    digits(true),
                    byte_level(false)})};
}
PreTokenizer deepseek_v3() {
  return {nullptr,
          sequence({split(R"(\p{N}{1,3})"),
                    split("[一-龥぀-ゟ゠-ヿ]+"),
                    split(kDeepseekV3),
                    byte_level(false)})};
}

struct Entry {
  std::string_view name;
  PreTokenizer (*make)();
};

// Held against golden ids of the real models (tests/loader/check_vocabularies.py): gpt-2, mpt,
// smollm, starcoder, refact, command-r, llama-bpe, qwen2, qwen35, falcon, deepseek-llm,
// deepseek-coder. The others are aliases in llama.cpp's converter or have no golden ids at hand.
constexpr Entry kEntries[] = {
    {"gpt-2", gpt2},
    {"mpt", mpt},
    {"smollm", smollm},
    {"starcoder", smollm},
    {"refact", smollm},
    {"command-r", command_r},
    {"llama-bpe", llama3},
    {"llama3", llama3},
    {"llama-v3", llama3},
    {"qwen2", qwen2},
    {"deepseek-r1-qwen", qwen2},
    {"qwen35", qwen35},
    {"tekken", tekken},
    {"falcon", falcon},
    {"deepseek-llm", deepseek_llm},
    {"deepseek-coder", deepseek_coder},
    {"deepseek-v3", deepseek_v3},
};

}  // namespace

std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name) {
  for (const auto& entry : kEntries) {
    if (entry.name == name) return entry.make();
  }
  return std::nullopt;
}

std::vector<std::string> known_pre_tokenizers() {
  std::vector<std::string> names;
  for (const auto& entry : kEntries) names.emplace_back(entry.name);
  return names;
}

}  // namespace sluice::loader
