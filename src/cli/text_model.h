// A loaded engine with its text side: tokenizer and chat template of the same checkpoint.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice::cli {

// Keeps the order of keys, which templates may print.
using Json = nlohmann::ordered_json;

class TextModel {
 public:
  // Loads with a progress bar on stderr if that is a terminal.
  static Result<TextModel> load(engine::EngineOptions options);

  engine::Engine& engine() const { return *engine_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  bool has_chat_template() const { return template_.has_value(); }

  // A text to be continued: special tokens in it are read as such, and the begin token is put in
  // front where the tokenizer says so, never twice.
  Result<std::vector<int32_t>> encode_text(std::string_view text) const;

  // A conversation (array of {"role", "content"}) through the model's template, which writes every
  // special token itself. kUnsupported for a model without a template.
  Result<std::vector<int32_t>> encode_chat(const Json& messages) const;

  // Tokens that still fit behind a prompt; may be negative.
  int room_behind(size_t prompt_tokens) const;

 private:
  TextModel(std::unique_ptr<engine::Engine> engine,
            text::Tokenizer tokenizer,
            std::optional<text::ChatTemplate> chat_template)
      : engine_(std::move(engine)),
        tokenizer_(std::move(tokenizer)),
        template_(std::move(chat_template)) {}

  std::unique_ptr<engine::Engine> engine_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
};

}  // namespace sluice::cli
