// From the bytes of a request body to JSON, with limits on what parsing may cost.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <variant>

#include "chat/types.h"
#include "server/openai/error.h"

namespace sluice::server {

// Deeper or larger bodies are refused: the JSON library looks keys up one by one, prints by
// recursion, and uses some 16 to 64 bytes of memory for each value.
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonKeys = 1024;        // of one object
inline constexpr size_t kMaxJsonValues = 1u << 20;  // of the body: a prompt of a million token ids

// The offset of the first byte that is not part of well-formed UTF-8 (Unicode 15, table 3-7).
std::optional<size_t> first_invalid_utf8(std::string_view text);

// The JSON object that `body` is. Errors (400) say at which byte; numbers beyond double are errors,
// as are NaN and Infinity, which are no JSON. Of equal keys of an object the last one counts.
std::variant<chat::Json, ApiError> parse_json_object(std::string_view body);

}  // namespace sluice::server
