#include "server/openai/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/version.h"
#include "server/openai/generate.h"
#include "server/openai/request.h"

namespace sluice::server {
namespace {

using chat::Json;

Json model_json(const chat::ModelInfo& model) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", model.owned_by},
          {"context_length", model.context_length}};
}

Json list_json(Json data) {
  return {{"object", "list"}, {"data", std::move(data)}};
}

Json health_json(const chat::Health& health) {
  Json json = {{"status", health.ok ? "ok" : "failing"},
               {"version", version()},
               {"running", health.running},
               {"queued", health.queued},
               {"queue_limit", health.queue_limit}};
  if (!health.ok) json["reason"] = health.reason;
  return json;
}

ApiError unknown_model(const std::string& id) {
  return api_error({chat::FailureKind::kUnknownModel,
                    "model",
                    fmt::format("there is no model '{}'; see /v1/models", id)});
}

HttpResponse json_response(int status, const Json& json) {
  HttpResponse response;
  response.status = status;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

asio::awaitable<void> list_models(Exchange& exchange, chat::Service& service) {
  Json data = Json::array();
  for (const auto& model : service.models()) data.push_back(model_json(model));
  HttpResponse response = json_response(200, list_json(std::move(data)));
  co_await exchange.send(std::move(response));
}

asio::awaitable<void> show_model(Exchange& exchange, chat::Service& service) {
  const auto models = service.models();
  const std::string& id = exchange.request().tail;
  const auto model =
      std::find_if(models.begin(), models.end(), [&](const auto& m) { return m.id == id; });
  if (model != models.end()) {
    co_await exchange.send(json_response(200, model_json(*model)));
    co_return;
  }
  co_await send_error(exchange, unknown_model(id));
}

asio::awaitable<void> show_health(Exchange& exchange, chat::Service& service) {
  const auto health = service.health();
  HttpResponse response = json_response(health.ok ? 200 : 503, health_json(health));
  co_await exchange.send(std::move(response));
}

// A browser sends other types across origins without asking first, so that a web page could make
// the model work; with application/json it must ask (CORS).
std::optional<ApiError> check_content_type(const HttpRequest& request) {
  std::string type = request.content_type.substr(0, request.content_type.find(';'));
  while (!type.empty() && type.back() == ' ') type.pop_back();
  std::transform(type.begin(), type.end(), type.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  if (type.empty() || type == "application/json") return std::nullopt;
  return ApiError{.status = 415,
                  .message =
                      "the content type must be application/json (curl: -H 'Content-Type: "
                      "application/json')",
                  .code = "unsupported_media_type"};
}

asio::awaitable<void> complete(Exchange& exchange,
                               chat::Service& service,
                               const ServerOptions& options,
                               Api api) {
  if (const auto error = check_content_type(exchange.request())) {
    co_await send_error(exchange, *error);
    co_return;
  }
  const std::string& body = exchange.request().body;
  auto parsed = api == Api::kChat ? parse_chat(body) : parse_completion(body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) {
    co_await send_error(exchange, *error);
    co_return;
  }
  co_await generate(exchange, service, options, std::get<ApiRequest>(std::move(parsed)));
}

}  // namespace

void add_openai_routes(Router& router, chat::Service& service, const ServerOptions& options) {
  router.add("POST", "/v1/chat/completions", [&](Exchange& exchange) {
    return complete(exchange, service, options, Api::kChat);
  });
  router.add("POST", "/v1/completions", [&](Exchange& exchange) {
    return complete(exchange, service, options, Api::kCompletion);
  });
  router.add("GET", "/v1/models", [&](Exchange& e) { return list_models(e, service); });
  router.add("GET", "/v1/models/*", [&](Exchange& e) { return show_model(e, service); });
  router.add("GET", "/health", [&](Exchange& e) { return show_health(e, service); });
}

}  // namespace sluice::server
