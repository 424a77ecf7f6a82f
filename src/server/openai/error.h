// OpenAI error objects: {"error": {"message", "type", "param", "code"}}, the body of every answer
// that is not 2xx and the payload of an error event in a stream.
#pragma once

#include <optional>
#include <string>

#include "chat/types.h"
#include "server/http_message.h"

namespace sluice::server {

struct ApiError {
  int status = 400;
  std::string type = "invalid_request_error";
  std::string message;
  std::optional<std::string> param = std::nullopt;  // JSON path: "messages[0].content"
  std::optional<std::string> code = std::nullopt;
  // Seconds after which the same request may succeed: the Retry-After header.
  std::optional<int> retry_after = std::nullopt;
};

// 400 for a value of the body: what is wrong with it and where.
ApiError invalid_value(std::string path, std::string message);
// 400 for a well-formed field or value that cannot be honoured and that ignoring would falsify.
ApiError unsupported_value(std::string path, std::string message);

// Status, type and code of each FailureKind; docs/http-api.md has the table.
ApiError api_error(const chat::Failure& failure);

// The error object as JSON text; bytes that are not UTF-8 come out as U+FFFD.
std::string to_json(const ApiError& error);

// A whole response of it.
HttpResponse error_response(const ApiError& error);

}  // namespace sluice::server
