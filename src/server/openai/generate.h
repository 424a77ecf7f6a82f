// From a parsed request to its whole response: submits it, moves events from the service to the
// encoder and bytes from there to the client, and ends both when one of them ends.
#pragma once

#include "chat/service.h"
#include "server/exchange.h"
#include "server/openai/error.h"
#include "server/openai/request.h"
#include "server/server.h"

namespace sluice::server {

// Sends an error as the whole response and notes it in the exchange's log.
asio::awaitable<void> send_error(Exchange& exchange, ApiError error);

// Generations live in this coroutine's frame: however it ends, they are cancelled with it.
asio::awaitable<void> generate(Exchange& exchange,
                               chat::Service& service,
                               const ServerOptions& options,
                               ApiRequest request);

}  // namespace sluice::server
