#include "cli/text_model.h"

#include <algorithm>
#include <utility>

#include "cli/load_progress.h"

namespace sluice::cli {

Result<TextModel> TextModel::load(engine::EngineOptions options) {
  SLUICE_TRY(auto engine, load_with_progress(std::move(options)));
  SLUICE_TRY(auto text, chat::ModelText::create(engine->info()));
  return TextModel(std::move(engine), std::move(text));
}

Result<std::vector<int32_t>> TextModel::encode(const chat::Prompt& prompt) const {
  SLUICE_TRY(auto encoded, text_.encode(prompt));
  return std::move(encoded.tokens);
}

int TextModel::room_behind(size_t prompt_tokens) const {
  const auto& info = engine_->info();
  return std::min(info.context_tokens, info.cache_tokens) - static_cast<int>(prompt_tokens);
}

}  // namespace sluice::cli
