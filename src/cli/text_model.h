// A loaded engine with the text side of the same checkpoint.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "chat/model_text.h"
#include "engine/engine.h"

namespace sluice::cli {

using chat::Json;

class TextModel {
 public:
  // Loads with a progress bar on stderr if that is a terminal.
  static Result<TextModel> load(engine::EngineOptions options);

  engine::Engine& engine() const { return *engine_; }
  const text::Tokenizer& tokenizer() const { return text_.tokenizer(); }
  bool has_chat_template() const { return text_.has_chat_template(); }

  // See ModelText::encode.
  Result<std::vector<int32_t>> encode(const chat::Prompt& prompt) const;

  // Tokens that still fit behind a prompt; may be negative.
  int room_behind(size_t prompt_tokens) const;

 private:
  TextModel(std::unique_ptr<engine::Engine> engine, chat::ModelText text)
      : engine_(std::move(engine)), text_(std::move(text)) {}

  std::unique_ptr<engine::Engine> engine_;
  chat::ModelText text_;
};

}  // namespace sluice::cli
