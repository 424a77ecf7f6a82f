// The conversation of a chat request: messages and tools, checked and brought to one form.
#pragma once

#include "chat/types.h"
#include "server/openai/fields.h"

namespace sluice::server {

// Reads "messages", "tools", "tool_choice", "parallel_tool_calls" and "chat_template_kwargs" of the
// body. Content parts of type text become one string; the role "developer" becomes "system", the
// name that templates know; keys that no template knows are dropped. Errors go to `body`.
chat::Messages read_messages(Fields& body, std::optional<ApiError>& error);

}  // namespace sluice::server
