// The HTTP server over a chat::Service: OpenAI's API, health, nothing else. docs/http-api.md is its
// contract with clients. This header is all that callers need; it names no Boost type.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "chat/service.h"

namespace sluice::server {

struct ServerOptions {
  std::string host = "127.0.0.1";  // a numeric address, or a name that resolves to one
  uint16_t port = 8080;            // 0: any free one, see Server::port()
  int threads = 2;                 // for sockets, JSON, templates and tokenization
  // Web origin ("https://example.com") whose pages may call the server, "*" for all; empty: none.
  std::string cors_origin;

  // Limits of what a client may cost.
  size_t max_body = 8u << 20;                        // bytes; more is answered with 413
  uint32_t max_header = 16u << 10;                   // bytes of request line and headers; more: 431
  size_t max_connections = 1024;                     // more are answered with 503 and closed
  std::chrono::milliseconds header_timeout{10'000};  // first byte of a request to end of headers
  std::chrono::milliseconds body_timeout{60'000};    // end of headers to end of body
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of a connection
  std::chrono::milliseconds write_timeout{30'000};   // for the client to take what one write sends
  // Kernel send buffer of a connection in bytes; 0: the system's choice. With the event buffer of
  // the service this is how far a slow reader may lag before its request is cancelled.
  int send_buffer = 0;

  std::chrono::milliseconds keepalive{5'000};  // a silent stream gets a comment this often
};

// A running server. Members may be called from any thread, but not from a signal handler.
class Server {
 public:
  // Binds, listens and starts the threads. The service must outlive the server. Errors: an address
  // that does not resolve, is in use or is not allowed; options out of range.
  static Result<std::unique_ptr<Server>> start(chat::Service& service, ServerOptions options);

  // stop(0) and wait().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const;    // the one that was bound
  std::string url() const;  // "http://127.0.0.1:8080"

  // Begins to shut down and returns: no new connections, idle ones are closed, running responses
  // may go on for `grace`, then they are cancelled (streams end with an error event). May be called
  // again; the shorter grace wins.
  void stop(std::chrono::milliseconds grace);

  // Returns when a stop() is complete and the threads have ended.
  void wait();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::server
