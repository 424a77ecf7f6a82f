#include "loader/gguf_tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "loader/gguf_pretokenizer.h"
#include "loader/json_writer.h"
#include "loader/spm_merges.h"

namespace sluice::loader {

namespace {

using nlohmann::json;

// tokenizer.ggml.token_type, from sentencepiece_model.proto.
enum TokenType : int64_t { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4 };

constexpr size_t kMaxTokens = size_t{1} << 24;
constexpr const char* kMetaspace = "\u2581";

// Chat models end a turn with one of these; files made before tokenizer.ggml.eot_token_id existed
// have them as control tokens only.
constexpr std::array<std::string_view, 5> kEndOfTurn = {
    "<|eot_id|>", "<|im_end|>", "<|eom_id|>", "<end_of_turn>", "<|end|>"};

struct Parts {
  json normalizer;
  json pre_tokenizer;
  json decoder;
  bool byte_fallback = false;  // SentencePiece kinds: unknown bytes become <0xNN> tokens
  bool ignore_merges = false;
  bool adds_bos = false;
  std::vector<Merge> own_merges;  // where the file has scores and no merges
};

class Converter {
 public:
  explicit Converter(const GgufMetadata& metadata) : metadata_(metadata) {}

  Result<GgufTokenizer> run() {
    SLUICE_TRY_STATUS(read_tokens());
    SLUICE_TRY(Parts parts, choose_parts());
    SLUICE_TRY_STATUS(read_special_tokens(parts));
    SLUICE_TRY_STATUS(read_templates());
    SLUICE_TRY_STATUS(write_json(parts));
    return std::move(result_);
  }

 private:
  template <class... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return make_error(ErrorCode::kCorruptFile,
                      "{}: {}",
                      metadata_.file_name(),
                      fmt::format(format, std::forward<Args>(args)...));
  }

  Status read_tokens() {
    SLUICE_TRY(auto tokens, metadata_.strings("tokenizer.ggml.tokens"));
    if (!tokens || tokens->empty() || tokens->size() > kMaxTokens) {
      return corrupt("holds no sensible list of tokens (tokenizer.ggml.tokens)");
    }
    tokens_ = std::move(*tokens);
    ids_.reserve(tokens_.size());
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const auto [found, added] = ids_.emplace(tokens_[id], static_cast<int32_t>(id));
      if (!added) {
        return corrupt("tokens {} and {} are the same, '{}'", found->second, id, tokens_[id]);
      }
    }
    SLUICE_TRY(auto types, metadata_.integers("tokenizer.ggml.token_type"));
    types_ = types ? std::move(*types) : std::vector<int64_t>(tokens_.size(), kNormal);
    if (types_.size() != tokens_.size()) {
      return corrupt("has {} tokens and {} token types", tokens_.size(), types_.size());
    }
    return {};
  }

  Result<Parts> choose_parts() {
    SLUICE_TRY(const auto kind, metadata_.require_string("tokenizer.ggml.model"));
    if (kind == "gpt2") return byte_level_parts();
    if (kind == "llama") return sentencepiece_parts();
    if (kind == "gemma4") return gemma_parts();
    return make_error(ErrorCode::kUnsupported,
                      "{}: has a tokenizer of kind '{}'; sluice knows gpt2 (byte-level BPE), llama "
                      "(SentencePiece BPE) and gemma4",
                      metadata_.file_name(),
                      kind);
  }

  Result<Parts> byte_level_parts() const {
    SLUICE_TRY(const auto pre, metadata_.string("tokenizer.ggml.pre"));
    auto known = find_pre_tokenizer(pre.value_or("missing"));
    if (!known) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: has the pre-tokenizer '{}'; sluice knows {}. An MLX folder of the "
                        "same model brings its own tokenizer.json",
                        metadata_.file_name(),
                        pre.value_or("(none named)"),
                        fmt::join(known_pre_tokenizers(), ", "));
    }
    Parts parts;
    parts.normalizer = std::move(known->normalizer);
    parts.pre_tokenizer = std::move(known->pre_tokenizer);
    parts.ignore_merges = known->ignore_merges;
    parts.adds_bos = known->adds_bos;
    parts.decoder = {{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", true}};
    return parts;
  }

  static json replace(const char* from, const char* to) {
    return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  }

  static json metaspace_decoder(bool strips_first_space) {
    json steps =
        json::array({replace(kMetaspace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
    if (strips_first_space) {
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
  }

  // As Llama 2's and Mistral's own tokenizer.json: a space before every stretch of text between
  // special tokens, no cutting into words, merges in the order of the scores.
  Result<Parts> sentencepiece_parts() const {
    Parts parts;
    SLUICE_TRY(const auto prefix, metadata_.boolean("tokenizer.ggml.add_space_prefix"));
    const bool adds_space = prefix.value_or(true);
    json steps = json::array();
    if (adds_space) steps.push_back({{"type", "Prepend"}, {"prepend", kMetaspace}});
    steps.push_back(replace(" ", kMetaspace));
    parts.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
    parts.decoder = metaspace_decoder(adds_space);
    parts.byte_fallback = true;
    parts.adds_bos = true;
    SLUICE_TRY(const auto scores, metadata_.floats("tokenizer.ggml.scores"));
    if (!scores || scores->size() != tokens_.size()) {
      return corrupt(
          "has {} tokens and {} scores", tokens_.size(), scores ? scores->size() : size_t{0});
    }
    if (std::any_of(scores->begin(), scores->end(), [](float one) { return std::isnan(one); })) {
      return corrupt("has a token score that is not a number");
    }
    parts.own_merges = merges_by_score(tokens_, ids_, *scores, types_);
    return parts;
  }

  // As Gemma's own tokenizer.json; the file has the merges.
  Result<Parts> gemma_parts() const {
    Parts parts;
    parts.normalizer = replace(" ", kMetaspace);
    parts.pre_tokenizer = {{"type", "Split"},
                           {"pattern", {{"String", " "}}},
                           {"behavior", "MergedWithPrevious"},
                           {"invert", false}};
    parts.decoder = metaspace_decoder(false);
    parts.byte_fallback = true;
    parts.adds_bos = true;
    return parts;
  }

  // The id at this key; nullopt if absent. An id outside the vocabulary is an error.
  Result<std::optional<int32_t>> token_id(const char* name) const {
    SLUICE_TRY(const auto id, metadata_.integer(fmt::format("tokenizer.ggml.{}", name)));
    if (!id) return std::optional<int32_t>();
    if (*id < 0 || *id >= static_cast<int64_t>(tokens_.size())) {
      return corrupt("tokenizer.ggml.{} is {}, but there are {} tokens", name, *id, tokens_.size());
    }
    return std::optional(static_cast<int32_t>(*id));
  }

  Status read_special_tokens(const Parts& parts) {
    auto& config = result_.tokenizer_config;
    config = json::object();
    const std::pair<const char*, const char*> kNamed[] = {{"bos_token_id", "bos_token"},
                                                          {"eos_token_id", "eos_token"},
                                                          {"unknown_token_id", "unk_token"},
                                                          {"padding_token_id", "pad_token"}};
    for (const auto& [key, name] : kNamed) {
      SLUICE_TRY(const auto id, token_id(key));
      if (id) config[name] = std::string(tokens_[*id]);
    }
    SLUICE_TRY(result_.bos_token_id, token_id("bos_token_id"));
    for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      SLUICE_TRY(const auto id, token_id(key));
      if (id) result_.eos_token_ids.push_back(*id);
    }
    for (const auto& text : kEndOfTurn) {
      const auto found = ids_.find(text);
      if (found == ids_.end() || types_[found->second] != kControl) continue;
      result_.eos_token_ids.push_back(found->second);
    }
    auto& eos = result_.eos_token_ids;
    std::sort(eos.begin(), eos.end());
    eos.erase(std::unique(eos.begin(), eos.end()), eos.end());

    SLUICE_TRY(const auto add_bos, metadata_.boolean("tokenizer.ggml.add_bos_token"));
    SLUICE_TRY(const auto add_eos, metadata_.boolean("tokenizer.ggml.add_eos_token"));
    result_.add_bos = add_bos.value_or(parts.adds_bos) && result_.bos_token_id.has_value();
    adds_eos_ = add_eos.value_or(false) && config.contains("eos_token");
    config["add_bos_token"] = result_.add_bos;
    config["add_eos_token"] = adds_eos_;
    return {};
  }

  Status read_templates() {
    SLUICE_TRY(const auto text, metadata_.string("tokenizer.chat_template"));
    if (text) result_.chat_template = std::string(*text);
    SLUICE_TRY(const auto tools, metadata_.string("tokenizer.chat_template.tool_use"));
    if (tools) result_.tool_chat_template = std::string(*tools);
    return {};
  }

  // Control tokens are special; user-defined ones are matched in text too, but are plain content.
  // "[PAD123]" fills the embedding up to its size in older files and is no token of the model.
  json added_tokens(const Parts& parts) const {
    json list = json::array();
    for (size_t id = 0; id < tokens_.size(); ++id) {
      const bool special =
          types_[id] == kControl || (parts.byte_fallback && types_[id] == kUnknown);
      if ((!special && types_[id] != kUserDefined) || tokens_[id].empty()) continue;
      if (tokens_[id] == fmt::format("[PAD{}]", id)) continue;
      list.push_back({{"id", id},
                      {"content", std::string(tokens_[id])},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", special}});
    }
    return list;
  }

  // Hugging Face's TemplateProcessing with the tokens that are put around a text; null for none.
  json post_processor() const {
    if (!result_.add_bos && !adds_eos_) return nullptr;
    json special = json::object();
    const auto token = [&](const char* name, int type) -> json {
      const auto text = result_.tokenizer_config[name].get<std::string>();
      special[text] = {{"id", text}, {"ids", {ids_.at(text)}}, {"tokens", {text}}};
      return {{"SpecialToken", {{"id", text}, {"type_id", type}}}};
    };
    json single = json::array(), pair = json::array();
    for (int type : {0, 1}) {
      json part = json::array();
      if (result_.add_bos) part.push_back(token("bos_token", type));
      part.push_back({{"Sequence", {{"id", type == 0 ? "A" : "B"}, {"type_id", type}}}});
      if (adds_eos_) part.push_back(token("eos_token", type));
      if (type == 0) single = part;
      pair.insert(pair.end(), part.begin(), part.end());
    }
    return {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", pair},
            {"special_tokens", special}};
  }

  // Vocabulary and merges are appended as text: see json_writer.h.
  Status write_json(const Parts& parts) {
    std::string& out = result_.tokenizer_json;
    const auto utf8_error = [&](const char* what, size_t index) {
      return corrupt("{} {} of the tokenizer is not UTF-8", what, index);
    };
    std::string vocab = "{";
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (id > 0) vocab += ',';
      if (!append_json_string(tokens_[id], vocab)) return utf8_error("token", id);
      vocab += ':';
      vocab += std::to_string(id);
    }
    vocab += '}';
    SLUICE_TRY(const std::string merges, merges_text(parts));
    const auto unk =
        parts.byte_fallback ? result_.tokenizer_config.value("unk_token", json()) : json();
    out = fmt::format(
        R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},)"
        R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{{"type":"BPE",)"
        R"("dropout":null,"unk_token":{},"continuing_subword_prefix":null,)"
        R"("end_of_word_suffix":null,"fuse_unk":{},"byte_fallback":{},"ignore_merges":{},)"
        R"("vocab":{},"merges":{}}}}})",
        added_tokens(parts).dump(),
        parts.normalizer.dump(),
        parts.pre_tokenizer.dump(),
        post_processor().dump(),
        parts.decoder.dump(),
        unk.dump(),
        parts.byte_fallback,
        parts.byte_fallback,
        parts.ignore_merges,
        vocab,
        merges);
    return {};
  }

  Result<std::string> merges_text(const Parts& parts) const {
    std::string out = "[";
    const auto add = [&](std::string_view left, std::string_view right) {
      out += out.size() > 1 ? ",[" : "[";
      if (!append_json_string(left, out)) return false;
      out += ',';
      if (!append_json_string(right, out)) return false;
      out += ']';
      return true;
    };
    for (const auto& [left, right] : parts.own_merges) {
      if (!add(left, right)) return corrupt("a token of the tokenizer is not UTF-8");
    }
    if (parts.own_merges.empty()) {
      SLUICE_TRY(const auto merges, metadata_.strings("tokenizer.ggml.merges"));
      if (!merges) return corrupt("holds no merges (tokenizer.ggml.merges)");
      for (size_t i = 0; i < merges->size(); ++i) {
        const std::string_view merge = (*merges)[i];
        const size_t space = merge.find(' ', 1);
        if (space == std::string_view::npos || space + 1 == merge.size() ||
            !add(merge.substr(0, space), merge.substr(space + 1))) {
          return corrupt("merge {} of the tokenizer is not two UTF-8 pieces", i);
        }
      }
    }
    out += ']';
    return out;
  }

  const GgufMetadata& metadata_;
  std::vector<std::string_view> tokens_;
  TokenIds ids_;
  std::vector<int64_t> types_;
  bool adds_eos_ = false;
  GgufTokenizer result_;
};

}  // namespace

Result<GgufTokenizer> tokenizer_from_gguf(const GgufMetadata& metadata) {
  return Converter(metadata).run();
}

}  // namespace sluice::loader
