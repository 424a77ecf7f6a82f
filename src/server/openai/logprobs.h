// Log-probabilities in the two shapes of OpenAI's API.
#pragma once

#include <cstdint>
#include <vector>

#include "chat/types.h"

namespace sluice::server {

// {"content": [{"token", "logprob", "bytes", "top_logprobs": [...]}], "refusal": null}. A token
// that is no whole UTF-8 has U+FFFD in "token" and its true bytes in "bytes". Values below -9999,
// such as -infinity, which JSON cannot say, are -9999, as OpenAI has it.
chat::Json chat_logprobs(const std::vector<chat::DrawnLogprob>& tokens);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. offset: characters (code points) of
// all tokens before these; moved on by these.
chat::Json completion_logprobs(const std::vector<chat::DrawnLogprob>& tokens, int64_t& offset);

// Appends the lists of `chunk` (of either shape, or null) to those of `total`.
void merge_logprobs(chat::Json& total, const chat::Json& chunk);

}  // namespace sluice::server
