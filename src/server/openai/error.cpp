#include "server/openai/error.h"

#include <utility>

namespace sluice::server {

using chat::FailureKind;
using chat::Json;

ApiError invalid_value(std::string path, std::string message) {
  return {.message = std::move(message), .param = std::move(path), .code = "invalid_value"};
}

ApiError unsupported_value(std::string path, std::string message) {
  return {.message = std::move(message), .param = std::move(path), .code = "unsupported_value"};
}

ApiError api_error(const chat::Failure& failure) {
  ApiError error{.message = failure.message};
  if (!failure.field.empty()) error.param = failure.field;
  const auto server_error = [&](int status, const char* code) {
    error.status = status;
    error.type = "server_error";
    error.code = code;
  };
  switch (failure.kind) {
    case FailureKind::kInvalidRequest:
      error.code = "invalid_value";
      break;
    case FailureKind::kUnknownModel:
      error.status = 404;
      error.code = "model_not_found";
      break;
    case FailureKind::kPromptTooLong:
      error.code = "context_length_exceeded";
      break;
    case FailureKind::kQueueFull:
      server_error(503, "queue_full");
      error.retry_after = 1;
      break;
    case FailureKind::kShuttingDown:
      server_error(503, "shutting_down");
      break;
    case FailureKind::kSlowConsumer:
      server_error(500, "slow_consumer");
      break;
    case FailureKind::kCancelled:
      server_error(500, "cancelled");
      break;
    case FailureKind::kInternal:
      server_error(500, "internal_error");
      break;
  }
  return error;
}

std::string to_json(const ApiError& error) {
  const auto or_null = [](const std::optional<std::string>& text) {
    return text ? Json(*text) : Json(nullptr);
  };
  const Json body = {{"error",
                      {{"message", error.message},
                       {"type", error.type},
                       {"param", or_null(error.param)},
                       {"code", or_null(error.code)}}}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response;
  response.status = error.status;
  response.body = to_json(error);
  if (error.retry_after) {
    response.headers.emplace_back("Retry-After", std::to_string(*error.retry_after));
  }
  return response;
}

}  // namespace sluice::server
