// The text side of a checkpoint: prompts from conversations and texts, and the parser of what the
// model answers to them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/types.h"
#include "engine/types.h"
#include "text/answer_parser.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::chat {

struct EncodedPrompt {
  std::vector<int32_t> tokens;
  std::unique_ptr<text::AnswerParser> parser;  // never null
};

// Immutable; any number of threads may use one at once.
class ModelText {
 public:
  // Errors: a tokenizer or chat template of the checkpoint that cannot be read.
  static Result<ModelText> create(const engine::ModelInfo& info);

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  bool has_chat_template() const { return template_.has_value(); }

  // A conversation through the model's template (the one for tools if there are tools and it has
  // one), which writes every special token itself; its answer is taken apart. A text to be
  // continued: special tokens in it are read as such, and the begin token is put in front where the
  // tokenizer says so, never twice. Ids are taken as they are. Errors: kUnsupported for a
  // conversation without a template; those of ChatTemplate::render and of Tokenizer::encode.
  Result<EncodedPrompt> encode(const Prompt& prompt) const;

 private:
  struct Template {
    std::string source;
    text::ChatTemplate compiled;
  };

  explicit ModelText(text::Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}
  static Result<std::optional<Template>> make_template(const std::optional<std::string>& source,
                                                       const engine::ModelInfo& info,
                                                       const text::Tokenizer& tokenizer);
  Result<EncodedPrompt> encode_messages(const Messages& messages) const;
  Result<std::vector<int32_t>> encode_text(std::string_view text) const;

  text::Tokenizer tokenizer_;
  std::optional<int32_t> bos_;
  std::optional<Template> template_;
  std::optional<Template> tool_template_;  // where tools have one of their own
};

}  // namespace sluice::chat
