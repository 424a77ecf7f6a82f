// One request and its response on a connection: what a handler talks to. A handler is a coroutine
// on the connection's strand; all members but waker() are for it alone.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "server/asio.h"
#include "server/http_message.h"
#include "server/request_log.h"

namespace sluice::server {

// Why wait() came back.
enum class Wake {
  kWaker,    // a waker was called since the last wait()
  kTimeout,  // nothing happened
  kGone,     // the client closed the connection: stop, nothing can be sent any more
  kAbort,    // the server is shutting down and its grace is over: end the response now
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  virtual RequestLog& log() = 0;

  // Sends a whole response: once, and not after begin_stream().
  virtual asio::awaitable<void> send(HttpResponse response) = 0;

  // Sends the head of a response of unknown length, pieces of its body, and its end. A write takes
  // as long as the client needs to make room, up to the write timeout.
  virtual asio::awaitable<void> begin_stream(HttpResponse head) = 0;
  virtual asio::awaitable<void> write(std::string_view bytes) = 0;
  virtual asio::awaitable<void> end_stream() = 0;
  virtual bool streaming() const = 0;
  // These four throw boost::system::system_error when the client cannot be reached; let it pass.

  // Suspends until something in Wake happens.
  virtual asio::awaitable<Wake> wait(std::chrono::milliseconds timeout) = 0;

  // A function that ends wait(), callable from any thread, also after the exchange has ended.
  virtual std::function<void()> waker() = 0;

  // `gone` runs once, on the strand, when the client closes the connection, also while a write is
  // waiting for it. It must stay callable until the handler ends.
  virtual void on_gone(std::function<void()> gone) = 0;
};

}  // namespace sluice::server
