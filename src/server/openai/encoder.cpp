#include "server/openai/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "server/openai/logprobs.h"

namespace sluice::server {
namespace {

using chat::ChatEvent;
using chat::FinishReason;
using chat::Json;
using chat::Usage;

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "stop";
}

void add(Usage& sum, const Usage& usage) {
  sum.prompt_tokens += usage.prompt_tokens;
  sum.cached_tokens += usage.cached_tokens;
  sum.completion_tokens += usage.completion_tokens;
  sum.reasoning_tokens += usage.reasoning_tokens;
}

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

// Everything of a response but its choices and usage.
Json head_json(const ResponseHead& head, bool stream) {
  const char* object = head.api == Api::kCompletion ? "text_completion"
                       : stream                     ? "chat.completion.chunk"
                                                    : "chat.completion";
  Json json = {
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
  if (!head.fingerprint.empty()) json["system_fingerprint"] = head.fingerprint;
  return json;
}

// Models are trusted to give UTF-8, but a fault there must not end in an exception here.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<ChoiceEncoder> make_choices(const ResponseHead& head) {
  SLUICE_CHECK(head.num_choices >= 1, "a response of {} choices", head.num_choices);
  std::vector<ChoiceEncoder> choices;
  for (int i = 0; i < head.num_choices; ++i) choices.emplace_back(head.api, i, head.logprobs);
  return choices;
}

// ---- folding chunks into one response

void append_text(Json& message, const char* key, const Json& text) {
  Json& target = message[key];
  if (!target.is_string()) target = "";
  target.get_ref<std::string&>() += text.get_ref<const std::string&>();
}

void fold_tool_call(Json& message, const Json& delta) {
  Json& calls = message["tool_calls"];
  if (calls.is_null()) calls = Json::array();
  const auto index = delta.at("index").get<size_t>();
  while (calls.size() <= index) {
    calls.push_back(
        {{"id", ""}, {"type", "function"}, {"function", {{"name", ""}, {"arguments", ""}}}});
  }
  Json& call = calls[index];
  if (delta.contains("id")) call["id"] = delta["id"];
  const Json& function = delta.at("function");
  if (function.contains("name")) call["function"]["name"] = function["name"];
  append_text(call["function"], "arguments", function.at("arguments"));
}

void fold_chat(Json& choice, const Json& chunk) {
  Json& message = choice["message"];
  for (const auto& [key, value] : chunk.at("delta").items()) {
    if (key == "role") continue;
    if (key == "tool_calls") {
      for (const auto& delta : value) fold_tool_call(message, delta);
    } else {
      append_text(message, key.c_str(), value);
    }
  }
}

void fold(Json& choice, const Json& chunk, Api api) {
  if (api == Api::kChat) {
    fold_chat(choice, chunk);
  } else {
    append_text(choice, "text", chunk.at("text"));
  }
  merge_logprobs(choice["logprobs"], chunk.at("logprobs"));
  if (!chunk.at("finish_reason").is_null()) choice["finish_reason"] = chunk["finish_reason"];
}

Json empty_choice(Api api, int index) {
  Json choice = {{"index", index}};
  if (api == Api::kChat) {
    choice["message"] = {{"role", "assistant"}, {"content", nullptr}};
  } else {
    choice["text"] = "";
  }
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  return choice;
}

}  // namespace

// ---- ChoiceEncoder

std::optional<Json> ChoiceEncoder::on_event(const ChatEvent& event) {
  if (const auto* text = std::get_if<chat::TextDelta>(&event)) return on_text(*text);
  if (const auto* call = std::get_if<chat::ToolCallDelta>(&event)) return on_tool_call(*call);
  if (const auto* finished = std::get_if<chat::Finished>(&event)) return on_finish(*finished);
  return std::nullopt;
}

std::optional<Json> ChoiceEncoder::on_text(const chat::TextDelta& event) {
  if (logprobs_) waiting_.insert(waiting_.end(), event.logprobs.begin(), event.logprobs.end());
  if (event.text.empty()) return std::nullopt;
  if (api_ == Api::kCompletion) return completion_choice(event.text, nullptr);
  Json delta = Json::object();
  if (event.channel == chat::Channel::kContent) {
    delta["content"] = event.text;
  } else {
    // Both names are in use: DeepSeek's and older vLLM's, then OpenRouter's and newer vLLM's.
    delta["reasoning_content"] = event.text;
    delta["reasoning"] = event.text;
  }
  return chat_choice(std::move(delta), nullptr);
}

Json ChoiceEncoder::on_tool_call(const chat::ToolCallDelta& event) {
  Json call = {{"index", event.index}};
  if (!event.id.empty()) {
    call["id"] = event.id;
    call["type"] = "function";
  }
  Json function = Json::object();
  if (!event.name.empty()) function["name"] = event.name;
  function["arguments"] = event.arguments;
  call["function"] = std::move(function);
  Json delta = Json::object();
  delta["tool_calls"] = Json::array({std::move(call)});
  return chat_choice(std::move(delta), nullptr);
}

Json ChoiceEncoder::on_finish(const chat::Finished& event) {
  const char* reason = finish_reason_name(event.reason);
  return api_ == Api::kChat ? chat_choice(Json::object(), reason) : completion_choice("", reason);
}

Json ChoiceEncoder::chat_choice(Json delta, Json finish_reason) {
  if (!role_sent_) {
    Json with_role = {{"role", "assistant"}};
    with_role.update(delta);
    delta = std::move(with_role);
    role_sent_ = true;
  }
  return {{"index", index_},
          {"delta", std::move(delta)},
          {"logprobs", take_logprobs()},
          {"finish_reason", std::move(finish_reason)}};
}

Json ChoiceEncoder::completion_choice(std::string text, Json finish_reason) {
  return {{"text", std::move(text)},
          {"index", index_},
          {"logprobs", take_logprobs()},
          {"finish_reason", std::move(finish_reason)}};
}

Json ChoiceEncoder::take_logprobs() {
  if (!logprobs_ || waiting_.empty()) return nullptr;
  Json json = api_ == Api::kChat ? chat_logprobs(waiting_) : completion_logprobs(waiting_, offset_);
  waiting_.clear();
  return json;
}

// ---- StreamEncoder

StreamEncoder::StreamEncoder(ResponseHead head)
    : head_(std::move(head)), choices_(make_choices(head_)), open_choices_(head_.num_choices) {}

void StreamEncoder::put_chunk(Json choices, std::optional<Json> usage, std::string& out) const {
  Json chunk = head_json(head_, true);
  chunk["choices"] = std::move(choices);
  // As OpenAI: with include_usage every chunk has the key.
  if (head_.include_usage) chunk["usage"] = usage ? std::move(*usage) : Json(nullptr);
  out += "data: ";
  out += dump(chunk);
  out += "\n\n";
}

void StreamEncoder::on_event(int choice, const ChatEvent& event, std::string& out) {
  if (done_) return;
  if (const auto* failure = std::get_if<chat::Failure>(&event)) {
    out += fmt::format("data: {}\n\n", to_json(api_error(*failure)));
    failure_ = *failure;
    done_ = true;
    return;
  }
  if (const auto* progress = std::get_if<chat::PrefillProgress>(&event)) {
    out += fmt::format(": keepalive {}/{}\n\n", progress->done, progress->total);
    return;
  }
  if (auto chunk = choices_.at(static_cast<size_t>(choice)).on_event(event)) {
    put_chunk(Json::array({std::move(*chunk)}), std::nullopt, out);
  }
  if (const auto* finished = std::get_if<chat::Finished>(&event)) {
    add(usage_, finished->usage);
    if (--open_choices_ > 0) return;
    if (head_.include_usage) put_chunk(Json::array(), usage_json(usage_), out);
    out += "data: [DONE]\n\n";
    done_ = true;
  }
}

// ---- CollectEncoder

CollectEncoder::CollectEncoder(ResponseHead head)
    : head_(std::move(head)), encoders_(make_choices(head_)), open_choices_(head_.num_choices) {
  for (int i = 0; i < head_.num_choices; ++i) folded_.push_back(empty_choice(head_.api, i));
}

void CollectEncoder::on_event(int choice, const ChatEvent& event) {
  if (done()) return;
  if (const auto* failure = std::get_if<chat::Failure>(&event)) {
    failure_ = *failure;
    return;
  }
  const auto at = static_cast<size_t>(choice);
  if (const auto chunk = encoders_.at(at).on_event(event)) fold(folded_[at], *chunk, head_.api);
  if (const auto* finished = std::get_if<chat::Finished>(&event)) {
    add(usage_, finished->usage);
    --open_choices_;
  }
}

std::string CollectEncoder::body() const {
  Json json = head_json(head_, false);
  json["choices"] = folded_;
  json["usage"] = usage_json(usage_);
  return dump(json);
}

}  // namespace sluice::server
