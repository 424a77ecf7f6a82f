// Fuzzes the parsing of request bodies of both endpoints: JSON, limits, fields, messages, tools.
#include <nlohmann/json.hpp>

#include "fuzz_target.h"
#include "server/openai/request.h"

namespace {

using sluice::server::ApiError;
using sluice::server::ApiRequest;

// What must hold of every result, whatever the bytes.
void check(const std::variant<ApiRequest, ApiError>& result) {
  if (const auto* error = std::get_if<ApiError>(&result)) {
    const auto json = nlohmann::json::parse(to_json(*error));
    if (error->status != 400 || error->message.empty() || !json.contains("error")) __builtin_trap();
    return;
  }
  const auto& request = std::get<ApiRequest>(result);
  if (request.requests.empty()) __builtin_trap();
  for (const auto& chat : request.requests) {
    if (chat.max_tokens && (*chat.max_tokens < 1 || chat.min_tokens > *chat.max_tokens)) {
      __builtin_trap();
    }
    for (const auto& stop : chat.stop) {
      if (stop.empty()) __builtin_trap();
    }
    if (const auto* messages = std::get_if<sluice::chat::Messages>(&chat.prompt)) {
      // Strict: throws on text that is not UTF-8.
      if (messages->messages.empty() || messages->messages.dump().empty()) __builtin_trap();
      (void)messages->tools.dump();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  check(sluice::server::parse_chat(body));
  check(sluice::server::parse_completion(body));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"temperature":0.7,"seed":42})",
      R"({"messages":[{"role":"system","content":[{"type":"text","text":"naïve 😀"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",)"
      R"("function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}],)"
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],)"
      R"("tool_choice":"auto","chat_template_kwargs":{"enable_thinking":false}})",
      R"({"messages":[{"role":"user","content":"\u00e9\ud83d\ude00"}],"logprobs":true,)"
      R"("top_logprobs":5,"logit_bias":{"7":-100,"8":1.5},"stop":["a","b"],"max_tokens":9,)"
      R"("min_tokens":2,"stream_options":null,"n":1,"response_format":{"type":"text"}})",
      R"({"prompt":["a",[1,2,3]],"max_tokens":16,"logprobs":3,"top_k":40,"top_p":0.9,"min_p":0.1})",
      R"({"prompt":[1,2,2147483647],"presence_penalty":-2,"frequency_penalty":2e0,"echo":false})",
  };
}
