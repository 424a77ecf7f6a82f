// One client connection: reads requests within the limits, hands them to the router's handlers, and
// watches for the client's leaving while they work. Everything runs on the connection's strand.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/beast.h"
#include "server/exchange.h"
#include "server/router.h"
#include "server/server.h"

namespace sluice::server {

class Connection : public std::enable_shared_from_this<Connection>, private Exchange {
 public:
  // The options and the router must outlive it; the socket's executor is a strand of its own.
  Connection(tcp::socket socket, const ServerOptions& options, const Router& router);

  // Serves requests until the connection ends. Its frame keeps the connection alive.
  asio::awaitable<void> run();

  // Answers with 503 and ends: there are too many connections.
  asio::awaitable<void> refuse();

  // From any thread. drain(): no further request; an idle connection closes now. abort(): the
  // running response must end now as well. close(): without a word.
  void drain();
  void abort();
  void close();

 private:
  using Parser = http::request_parser<http::string_body>;

  // Exchange
  const HttpRequest& request() const override { return request_; }
  RequestLog& log() override { return log_; }
  asio::awaitable<void> send(HttpResponse response) override;
  asio::awaitable<void> begin_stream(HttpResponse head) override;
  asio::awaitable<void> write(std::string_view bytes) override;
  asio::awaitable<void> end_stream() override;
  bool streaming() const override { return streaming_; }
  asio::awaitable<Wake> wait(std::chrono::milliseconds timeout) override;
  std::function<void()> waker() override;
  void on_gone(std::function<void()> gone) override { gone_action_ = std::move(gone); }

  asio::awaitable<bool> read_request();
  asio::awaitable<bool> refuse_unread(const error_code& error);
  void take_request(Parser::value_type message);
  asio::awaitable<void> answer();
  asio::awaitable<void> dispatch();
  HttpResponse answer_without_handler(const Router::Match& match);
  asio::awaitable<void> watch();
  asio::awaitable<void> end_watch();
  asio::awaitable<void> linger();
  void client_left();
  void wake();
  void close_now();
  http::response<http::string_body> make_response(HttpResponse head) const;

  beast::tcp_stream stream_;
  const ServerOptions& options_;
  const Router& router_;
  beast::flat_buffer buffer_;  // bytes that were read and not yet parsed
  asio::steady_timer timer_;   // what wait() waits on; cancelled to wake it

  // Of the connection.
  bool idle_ = true;       // no byte of a request has come
  bool draining_ = false;  // the response in work is the last one
  bool aborting_ = false;
  // Of the request in work.
  HttpRequest request_;
  std::string origin_;
  RequestLog log_;
  unsigned version_ = 11;
  bool keep_alive_ = true;
  bool head_sent_ = false;
  bool streaming_ = false;
  // Of the watch.
  bool watching_ = false;
  bool watch_ending_ = false;
  bool gone_ = false;
  std::function<void()> gone_action_;
  bool woken_ = false;
  std::atomic<bool> wake_posted_{false};
};

}  // namespace sluice::server
