// The routes of the server: OpenAI's endpoints over a chat::Service, and /health.
#pragma once

#include "chat/service.h"
#include "server/router.h"
#include "server/server.h"

namespace sluice::server {

// Adds POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /v1/models/* and GET
// /health. The service and the options must outlive the router.
void add_openai_routes(Router& router, chat::Service& service, const ServerOptions& options);

}  // namespace sluice::server
