#include "server/openai/request.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "server/json_body.h"
#include "server/openai/fields.h"
#include "server/openai/messages.h"

namespace sluice::server {
namespace {

using chat::ChatRequest;
using chat::Json;

constexpr int kIntMax = std::numeric_limits<int>::max();

// Fields of OpenAI's API and of other local servers that change the answer. `neutral` is the value
// (as JSON) that asks for nothing; null and absence always do.
struct RefusedField {
  std::string_view name;
  std::string_view neutral;
  std::string_view way_out;
};
constexpr std::array kRefused{
    RefusedField{"n", "1", "several choices are not supported yet; send the request n times"},
    RefusedField{"best_of", "1", "it is not supported; leave it out"},
    RefusedField{"echo", "false", "it is not supported; put the prompt in front yourself"},
    RefusedField{"suffix", "\"\"", "inserting text is not supported; leave it out"},
    RefusedField{"functions", "[]", "it is deprecated and not supported; use 'tools'"},
    RefusedField{"function_call", "\"none\"", "it is deprecated; use 'tools' and 'tool_choice'"},
    RefusedField{"modalities", "[\"text\"]", "only text is supported"},
    RefusedField{"audio", "{}", "only text is supported"},
    RefusedField{"web_search_options", "", "the server does not search; leave it out"},
    RefusedField{"verbosity", "\"medium\"", "it is not supported; ask for it in a message"},
    RefusedField{"enable_thinking", "", "put it into 'chat_template_kwargs'"},
    RefusedField{"add_generation_prompt", "true", "only true is supported"},
    RefusedField{"continue_final_message", "false", "only false is supported"},
    RefusedField{"stop_token_ids", "[]", "use 'stop' with strings"},
    RefusedField{"prompt_logprobs", "", "log-probabilities of the prompt are not supported"},
    RefusedField{"use_beam_search", "false", "it is not supported; leave it out"},
    RefusedField{"typical_p", "1", "this filter is not supported; use 'top_p' or 'min_p'"},
    RefusedField{"xtc_probability", "0", "this filter is not supported; leave it out"},
    RefusedField{"dry_multiplier", "0", "this penalty is not supported; leave it out"},
    RefusedField{"mirostat", "0", "this sampler is not supported; leave it out"},
    RefusedField{"grammar", "\"\"", "constrained output is not supported yet"},
    RefusedField{"json_schema", "", "constrained output is not supported yet"},
    RefusedField{"guided_json", "", "constrained output is not supported yet"},
    RefusedField{"guided_regex", "", "constrained output is not supported yet"},
    RefusedField{"guided_choice", "", "constrained output is not supported yet"},
    RefusedField{"guided_grammar", "", "constrained output is not supported yet"},
    RefusedField{"structured_outputs", "", "constrained output is not supported yet"},
};

void refuse_unsupported(Fields& body) {
  for (const auto& field : kRefused) {
    const Json* value = body.find(field.name);
    if (value == nullptr) continue;
    if (!field.neutral.empty() && *value == Json::parse(field.neutral)) continue;
    body.fail(unsupported_value(std::string(field.name),
                                fmt::format("'{}' is {}, which would change the answer, but {}",
                                            field.name,
                                            describe(*value),
                                            field.way_out)));
  }
}

void read_response_format(Fields& body, std::optional<ApiError>& error) {
  const Json* format = body.object("response_format");
  if (format == nullptr) return;
  Fields fields(*format, "response_format", error);
  std::string type;
  if (fields.require("type")) fields.read("type", type);
  if (error || type == "text") return;
  fields.fail(unsupported_value("response_format.type",
                                fmt::format("response_format '{}' is not supported yet; only "
                                            "'text' is",
                                            type)));
}

void read_logit_bias(Fields& body, ChatRequest& out) {
  const Json* bias = body.object("logit_bias");
  if (bias == nullptr) return;
  constexpr Range kBias{-100, 100};
  for (const auto& [key, value] : bias->items()) {
    int32_t token = 0;
    const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (code != std::errc() || end != key.data() + key.size() || token < 0) {
      return body.fail(invalid_value(
          "logit_bias",
          fmt::format("'logit_bias' has the key {}; keys must be token ids, integers >= 0",
                      describe(Json(key)))));
    }
    if (!value.is_number() || !kBias.contains(value.get<double>())) {
      return body.expected("logit_bias", kBias.text() + " for each token", value);
    }
    out.sampling.logit_bias[token] = value.get<double>();
  }
}

void read_seed(Fields& body, ChatRequest& out) {
  const Json* seed = body.find("seed");
  if (seed == nullptr) return;
  if (!seed->is_number_integer()) return body.expected("seed", "an integer of 64 bits", *seed);
  // Negative seeds are as good as any: their two's complement.
  out.sampling.seed = seed->is_number_unsigned() ? seed->get<uint64_t>()
                                                 : static_cast<uint64_t>(seed->get<int64_t>());
}

void read_sampling(Fields& body, ChatRequest& out) {
  auto& s = out.sampling;
  body.read("temperature", Range{0, 100}, s.temperature);
  body.read("top_p", Range{0, 1, true}, s.top_p);
  body.read("top_k", -1, kIntMax, s.top_k);
  if (s.top_k == -1) s.top_k = 0;  // vLLM's word for "off"
  body.read("min_p", Range{0, 1}, s.min_p);
  body.read("repetition_penalty",
            Range{0, std::numeric_limits<double>::infinity(), true},
            s.repetition_penalty);
  body.read("presence_penalty", Range{-2, 2}, s.presence_penalty);
  body.read("frequency_penalty", Range{-2, 2}, s.frequency_penalty);
  body.read("penalty_window", -1, kIntMax, s.penalty_window);
  read_seed(body, out);
  read_logit_bias(body, out);
}

void read_stop(Fields& body, ChatRequest& out) {
  const Json* stop = body.find("stop");
  if (stop == nullptr) return;
  const auto add = [&](const Json& value, std::string path) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      std::string message =
          fmt::format("'{}' must be a string that is not empty, not {}", path, describe(value));
      return body.fail(invalid_value(std::move(path), std::move(message)));
    }
    out.stop.push_back(value.get<std::string>());
  };
  if (!stop->is_array()) return add(*stop, "stop");
  if (stop->size() > kMaxStops) {
    return body.fail(invalid_value(
        "stop",
        fmt::format("'stop' has {} strings; at most {} are supported", stop->size(), kMaxStops)));
  }
  for (size_t i = 0; i < stop->size(); ++i) add((*stop)[i], fmt::format("stop[{}]", i));
}

void read_lengths(Fields& body, Api api, ChatRequest& out) {
  body.read("max_tokens", 1, kIntMax, out.max_tokens);
  if (api == Api::kChat) {
    std::optional<int> newer;
    body.read("max_completion_tokens", 1, kIntMax, newer);
    if (newer && out.max_tokens && *newer != *out.max_tokens) {
      body.fail(invalid_value("max_completion_tokens",
                              fmt::format("'max_tokens' is {} and 'max_completion_tokens' is {}; "
                                          "send one of them",
                                          *out.max_tokens,
                                          *newer)));
    }
    if (newer) out.max_tokens = newer;
  } else if (!out.max_tokens) {
    out.max_tokens = kCompletionTokens;
  }
  std::optional<int> min_tokens;
  body.read("min_tokens", 0, kIntMax, min_tokens);
  out.min_tokens = min_tokens.value_or(0);
  if (out.max_tokens && out.min_tokens > *out.max_tokens) {
    body.fail(invalid_value("min_tokens",
                            fmt::format("'min_tokens' is {}, more than the {} tokens of "
                                        "'max_tokens'",
                                        out.min_tokens,
                                        *out.max_tokens)));
  }
  body.read("ignore_eos", out.ignore_eos);
}

void read_logprobs(Fields& body, Api api, ChatRequest& out) {
  if (api == Api::kCompletion) {
    body.read("logprobs", 0, kMaxTopLogprobs, out.logprobs);
    return;
  }
  bool wanted = false;
  std::optional<int> top;
  body.read("logprobs", wanted);
  body.read("top_logprobs", 0, kMaxTopLogprobs, top);
  if (top && !wanted) {
    body.fail(invalid_value("top_logprobs", "'top_logprobs' needs 'logprobs' to be true"));
  }
  if (wanted) out.logprobs = top.value_or(0);
}

// What both endpoints share.
ChatRequest read_common(Fields& body, ApiRequest& out, std::optional<ApiError>& error) {
  ChatRequest request;
  body.read("model", request.model);
  body.read("stream", out.stream);
  if (const Json* options = body.object("stream_options")) {
    if (!out.stream) {
      body.fail(invalid_value("stream_options", "'stream_options' needs 'stream' to be true"));
    }
    Fields(*options, "stream_options", error).read("include_usage", out.include_usage);
  }
  refuse_unsupported(body);
  read_response_format(body, error);
  read_sampling(body, request);
  read_stop(body, request);
  read_lengths(body, out.api, request);
  read_logprobs(body, out.api, request);
  return request;
}

bool read_token_ids(const Json& list,
                    const std::string& path,
                    Fields& body,
                    std::vector<int32_t>& out) {
  out.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& value = list[i];
    const bool fits =
        value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kIntMax);
    if (!fits) {
      body.fail(invalid_value(
          fmt::format("{}[{}]", path, i),
          fmt::format(
              "'{}[{}]' must be a token id, an integer >= 0, not {}", path, i, describe(value))));
      return false;
    }
    out.push_back(value.get<int32_t>());
  }
  return true;
}

// "prompt": a string, token ids, or a list of either.
std::vector<chat::Prompt> read_prompts(Fields& body) {
  std::vector<chat::Prompt> prompts;
  if (!body.require("prompt")) return prompts;
  const Json& prompt = *body.find("prompt");
  if (prompt.is_string()) {
    prompts.emplace_back(prompt.get<std::string>());
    return prompts;
  }
  if (!prompt.is_array() || prompt.empty()) {
    body.expected("prompt", "a string, token ids or a list of either, not empty", prompt);
    return prompts;
  }
  std::vector<int32_t> ids;
  if (prompt[0].is_number()) {
    if (read_token_ids(prompt, "prompt", body, ids)) prompts.emplace_back(std::move(ids));
    return prompts;
  }
  if (prompt.size() > kMaxPrompts) {
    body.fail(invalid_value(
        "prompt",
        fmt::format(
            "'prompt' has {} prompts; at most {} are supported", prompt.size(), kMaxPrompts)));
    return prompts;
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    const std::string path = fmt::format("prompt[{}]", i);
    ids.clear();
    if (prompt[i].is_string()) {
      prompts.emplace_back(prompt[i].get<std::string>());
    } else if (!prompt[i].is_array() || prompt[i].empty()) {
      body.fail(invalid_value(
          path,
          fmt::format("'{}' must be a string or token ids, not {}", path, describe(prompt[i]))));
    } else if (read_token_ids(prompt[i], path, body, ids)) {
      prompts.emplace_back(std::move(ids));
    }
  }
  return prompts;
}

}  // namespace

std::variant<ApiRequest, ApiError> parse_chat(std::string_view body) {
  auto json = parse_json_object(body);
  if (auto* error = std::get_if<ApiError>(&json)) return std::move(*error);
  std::optional<ApiError> error;
  Fields fields(std::get<Json>(json), "", error);
  ApiRequest out;
  ChatRequest request = read_common(fields, out, error);
  request.prompt = read_messages(fields, error);
  if (error) return std::move(*error);
  out.requests.push_back(std::move(request));
  return out;
}

std::variant<ApiRequest, ApiError> parse_completion(std::string_view body) {
  auto json = parse_json_object(body);
  if (auto* error = std::get_if<ApiError>(&json)) return std::move(*error);
  std::optional<ApiError> error;
  Fields fields(std::get<Json>(json), "", error);
  ApiRequest out;
  out.api = Api::kCompletion;
  const ChatRequest common = read_common(fields, out, error);
  auto prompts = read_prompts(fields);
  if (error) return std::move(*error);
  for (auto& prompt : prompts) {
    ChatRequest request = common;
    request.prompt = std::move(prompt);
    request.prompt_index = static_cast<int>(out.requests.size());
    out.requests.push_back(std::move(request));
  }
  return out;
}

}  // namespace sluice::server
