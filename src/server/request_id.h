// Identifiers of requests and responses.
#pragma once

#include <string>
#include <string_view>

namespace sluice::server {

// `prefix` and 24 random characters of [0-9a-z]: unguessable enough for logs, not for secrets.
// Callable from any thread.
std::string random_id(std::string_view prefix);

// Whether a client's x-request-id may be echoed and logged: 1 to 128 of [A-Za-z0-9._:/+=@-].
bool is_fit_request_id(std::string_view id);

}  // namespace sluice::server
