// Bodies of POST /v1/chat/completions and POST /v1/completions to ChatRequests.
//
// Strict: a wrong type or a value out of range is an error with its JSON path. Fields that sluice
// does not know are ignored, as OpenAI's API does, except those that change the answer where they
// are known (request.cpp has the list): ignoring them would give a wrong answer silently, so they
// are refused by name. docs/http-api.md lists all three kinds.
//
// Pure functions; what needs the model (its name, lengths, vocabulary) is the service's to check.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "chat/types.h"
#include "server/openai/error.h"

namespace sluice::server {

enum class Api { kChat, kCompletion };

struct ApiRequest {
  Api api = Api::kChat;
  bool stream = false;
  bool include_usage = false;  // stream_options.include_usage
  // One for each prompt (a chat has one), all with the same settings; prompt_index counts them.
  // Their `id` is empty.
  std::vector<chat::ChatRequest> requests;
};

inline constexpr int kMaxPrompts = 128;       // of one /v1/completions request
inline constexpr int kMaxStops = 16;          // OpenAI: 4
inline constexpr int kMaxTopLogprobs = 20;    // OpenAI: 20 for chat, 5 for completions
inline constexpr int kCompletionTokens = 16;  // default max_tokens of /v1/completions (OpenAI)

// body: the bytes of the HTTP body, valid or not.
std::variant<ApiRequest, ApiError> parse_chat(std::string_view body);
std::variant<ApiRequest, ApiError> parse_completion(std::string_view body);

}  // namespace sluice::server
