#include "chat/model_text.h"

#include <utility>

namespace sluice::chat {
namespace {

// A special token's text from tokenizer_config.json: a string, or an object with "content".
std::string token_text(const Json& config, const char* key) {
  if (!config.is_object()) return "";
  const auto found = config.find(key);
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_object() || !found->contains("content")) return "";
  const auto& content = found->at("content");
  return content.is_string() ? content.get<std::string>() : "";
}

}  // namespace

Result<ModelText> ModelText::create(const engine::ModelInfo& info) {
  SLUICE_TRY(auto tokenizer, text::Tokenizer::from_json(info.tokenizer_json));
  ModelText made(std::move(tokenizer));
  made.bos_ = info.bos_token_id;
  SLUICE_TRY(made.template_, make_template(info.chat_template, info, made.tokenizer_));
  SLUICE_TRY(made.tool_template_, make_template(info.tool_chat_template, info, made.tokenizer_));
  return made;
}

Result<std::optional<ModelText::Template>> ModelText::make_template(
    const std::optional<std::string>& source,
    const engine::ModelInfo& info,
    const text::Tokenizer& tokenizer) {
  if (!source) return std::optional<Template>();
  const auto config = Json::parse(info.tokenizer_config_json, nullptr, false);
  auto bos = token_text(config, "bos_token");
  if (bos.empty() && info.bos_token_id) {
    bos = tokenizer.id_to_token(*info.bos_token_id).value_or("");
  }
  const auto eos = token_text(config, "eos_token");
  SLUICE_TRY(auto compiled, text::ChatTemplate::from_source(*source, bos, eos));
  return std::optional<Template>(Template{*source, std::move(compiled)});
}

Result<EncodedPrompt> ModelText::encode(const Prompt& prompt) const {
  if (const auto* messages = std::get_if<Messages>(&prompt)) return encode_messages(*messages);
  EncodedPrompt encoded;
  encoded.parser = std::make_unique<text::PlainParser>();
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    encoded.tokens = *ids;
  } else {
    SLUICE_TRY(encoded.tokens, encode_text(std::get<std::string>(prompt)));
  }
  return encoded;
}

Result<EncodedPrompt> ModelText::encode_messages(const Messages& messages) const {
  const bool tools = !messages.tools.empty();
  const auto& chosen = tools && tool_template_ ? tool_template_ : template_;
  if (!chosen) {
    return make_error(ErrorCode::kUnsupported,
                      "the model has no chat template; give it a raw prompt to continue instead of "
                      "a conversation");
  }
  const std::string messages_json = messages.messages.dump();
  const std::string tools_json = tools ? messages.tools.dump() : "";
  const std::string kwargs_json = messages.template_kwargs.dump();
  text::ChatRenderInput input;
  input.messages_json = messages_json;
  input.tools_json = tools_json;
  input.kwargs_json = kwargs_json;
  SLUICE_TRY(const auto text, chosen->compiled.render(input));
  EncodedPrompt encoded;
  SLUICE_TRY(encoded.tokens,
             tokenizer_.encode(text, {.add_special = false, .parse_special = true}));
  encoded.parser = text::make_answer_parser(chosen->source, text);
  return encoded;
}

Result<std::vector<int32_t>> ModelText::encode_text(std::string_view text) const {
  SLUICE_TRY(auto ids, tokenizer_.encode(text));
  // The begin token may stand in the text and be added by the tokenizer as well.
  if (bos_ && ids.size() >= 2 && ids[0] == *bos_ && ids[1] == *bos_) ids.erase(ids.begin());
  return ids;
}

}  // namespace sluice::chat
