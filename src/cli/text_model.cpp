#include "cli/text_model.h"

#include <algorithm>

#include "cli/load_progress.h"

namespace sluice::cli {
namespace {

// A special token's text from tokenizer_config.json: a string, or an object with "content".
std::string token_text(const nlohmann::json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string()) {
    return found->at("content").get<std::string>();
  }
  return "";
}

Result<std::optional<text::ChatTemplate>> make_template(const engine::ModelInfo& info,
                                                        const text::Tokenizer& tokenizer) {
  if (!info.chat_template) return std::optional<text::ChatTemplate>();
  const auto config = nlohmann::json::parse(info.tokenizer_config_json, nullptr, false);
  auto bos = config.is_object() ? token_text(config, "bos_token") : "";
  const auto eos = config.is_object() ? token_text(config, "eos_token") : "";
  if (bos.empty() && info.bos_token_id) {
    bos = tokenizer.id_to_token(*info.bos_token_id).value_or("");
  }
  SLUICE_TRY(auto made, text::ChatTemplate::from_source(*info.chat_template, bos, eos));
  return std::optional<text::ChatTemplate>(std::move(made));
}

}  // namespace

Result<TextModel> TextModel::load(engine::EngineOptions options) {
  LoadProgress progress(options.model.filename().string());
  options.progress = [&](uint64_t done, uint64_t total) { progress.set(done, total); };
  SLUICE_TRY(auto engine, engine::Engine::load(options));
  progress.finish();
  SLUICE_TRY(auto tokenizer, text::Tokenizer::from_json(engine->info().tokenizer_json));
  SLUICE_TRY(auto chat_template, make_template(engine->info(), tokenizer));
  return TextModel(std::move(engine), std::move(tokenizer), std::move(chat_template));
}

Result<std::vector<int32_t>> TextModel::encode_text(std::string_view text) const {
  SLUICE_TRY(auto ids, tokenizer_.encode(text));
  const auto bos = engine_->info().bos_token_id;
  if (bos && ids.size() >= 2 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

Result<std::vector<int32_t>> TextModel::encode_chat(const Json& messages) const {
  if (!template_) {
    return make_error(ErrorCode::kUnsupported,
                      "the model has no chat template; continue a text with `sluice run -p` and "
                      "without --chat");
  }
  const auto json = messages.dump();
  text::ChatRenderInput input;
  input.messages_json = json;
  SLUICE_TRY(const auto prompt, template_->render(input));
  return tokenizer_.encode(prompt, {.add_special = false, .parse_special = true});
}

int TextModel::room_behind(size_t prompt_tokens) const {
  const auto& info = engine_->info();
  return std::min(info.context_tokens, info.cache_tokens) - static_cast<int>(prompt_tokens);
}

}  // namespace sluice::cli
