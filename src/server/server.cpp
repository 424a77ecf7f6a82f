#include "server/server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/beast.h"
#include "server/connection.h"
#include "server/openai/handlers.h"
#include "server/router.h"

namespace sluice::server {
namespace {

// After the grace of a stop: for responses to send their error event, then for what is left.
constexpr std::chrono::milliseconds kAbortTime{2000};
constexpr std::chrono::milliseconds kCloseTime{1000};
// How long accepting rests when the process has no file descriptor left.
constexpr std::chrono::milliseconds kAcceptPause{100};

Status check(const ServerOptions& options) {
  const auto wrong = [](const char* name, auto value, const char* allowed) {
    return make_error(ErrorCode::kInvalidArgument, "{} is {}; it must be {}", name, value, allowed);
  };
  if (options.threads < 1 || options.threads > 256) {
    return wrong("the number of server threads", options.threads, "in 1 to 256");
  }
  if (options.max_body < 1024) return wrong("max_body", options.max_body, "at least 1024 bytes");
  if (options.max_header < 1024) return wrong("max_header", options.max_header, "at least 1024");
  if (options.max_connections < 1) return wrong("max_connections", 0, "at least 1");
  for (const auto& [name, time] : {std::pair{"header_timeout", options.header_timeout},
                                   {"body_timeout", options.body_timeout},
                                   {"idle_timeout", options.idle_timeout},
                                   {"write_timeout", options.write_timeout},
                                   {"keepalive", options.keepalive}}) {
    if (time.count() < 1) return wrong(name, time.count(), "at least 1 ms");
  }
  return {};
}

Error network_error(const ServerOptions& options, const char* what, const error_code& error) {
  return make_error(ErrorCode::kIo,
                    "cannot {} {}:{}: {}; choose another --host or --port",
                    what,
                    options.host,
                    options.port,
                    error.message());
}

}  // namespace

class Server::Impl {
 public:
  Impl(chat::Service& service, ServerOptions options)
      : options_(std::move(options)),
        io_(options_.threads),
        strand_(asio::make_strand(io_)),
        acceptor_(strand_),
        stop_timer_(strand_) {
    add_openai_routes(router_, service, options_);
  }

  Status listen();
  void start_threads();
  void stop(std::chrono::milliseconds grace);
  void wait();
  uint16_t port() const { return port_; }
  const ServerOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;

  asio::awaitable<void> accept_loop();
  void serve(tcp::socket socket);
  asio::awaitable<void> serve_one(std::shared_ptr<Connection> connection, bool refused);
  asio::awaitable<void> shut_down();
  asio::awaitable<bool> wait_for_end(std::chrono::milliseconds time, bool until_deadline);
  template <class Action>
  void for_each_connection(Action action);
  size_t num_connections();

  const ServerOptions options_;
  Router router_;
  asio::io_context io_;
  asio::strand<asio::io_context::executor_type> strand_;  // of the acceptor and of stopping
  tcp::acceptor acceptor_;
  asio::steady_timer stop_timer_;
  uint16_t port_ = 0;
  std::vector<std::thread> threads_;
  std::mutex join_mutex_;

  std::mutex connections_mutex_;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections_;  // guarded by the mutex

  // On strand_ only.
  bool stopping_ = false;
  Clock::time_point deadline_ = Clock::time_point::max();
};

Status Server::Impl::listen() {
  error_code error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(options_.host,
                                      std::to_string(options_.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service,
                                      error);
  if (error || found.empty()) return network_error(options_, "resolve", error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return network_error(options_, "listen on", error);
  port_ = acceptor_.local_endpoint().port();
  return {};
}

void Server::Impl::start_threads() {
  asio::co_spawn(strand_, accept_loop(), asio::detached);
  for (int i = 0; i < options_.threads; ++i) {
    threads_.emplace_back([this] { io_.run(); });
  }
}

asio::awaitable<void> Server::Impl::accept_loop() {
  while (!stopping_) {
    error_code error;
    tcp::socket socket(asio::make_strand(io_));
    co_await acceptor_.async_accept(socket, into(error));
    if (stopping_) break;
    if (!error) {
      serve(std::move(socket));
      continue;
    }
    if (error == asio::error::connection_aborted) continue;
    spdlog::warn("cannot accept a connection: {}", error.message());
    asio::steady_timer pause(strand_, kAcceptPause);
    co_await pause.async_wait(into(error));
  }
}

void Server::Impl::serve(tcp::socket socket) {
  const auto executor = socket.get_executor();
  auto connection = std::make_shared<Connection>(std::move(socket), options_, router_);
  bool refused = false;
  {
    std::lock_guard lock(connections_mutex_);
    refused = connections_.size() >= options_.max_connections;
    connections_.emplace(connection.get(), connection);
  }
  asio::co_spawn(executor, serve_one(std::move(connection), refused), asio::detached);
}

asio::awaitable<void> Server::Impl::serve_one(std::shared_ptr<Connection> connection,
                                              bool refused) {
  if (refused) {
    co_await connection->refuse();
  } else {
    co_await connection->run();
  }
  std::lock_guard lock(connections_mutex_);
  connections_.erase(connection.get());
}

template <class Action>
void Server::Impl::for_each_connection(Action action) {
  std::vector<std::shared_ptr<Connection>> alive;
  {
    std::lock_guard lock(connections_mutex_);
    for (const auto& [key, weak] : connections_) {
      if (auto connection = weak.lock()) alive.push_back(std::move(connection));
    }
  }
  for (const auto& connection : alive) action(*connection);
}

size_t Server::Impl::num_connections() {
  std::lock_guard lock(connections_mutex_);
  return connections_.size();
}

void Server::Impl::stop(std::chrono::milliseconds grace) {
  const auto deadline = Clock::now() + std::max(grace, std::chrono::milliseconds(0));
  asio::post(strand_, [this, deadline] {
    deadline_ = std::min(deadline_, deadline);
    if (std::exchange(stopping_, true)) {
      stop_timer_.cancel();
    } else {
      asio::co_spawn(strand_, shut_down(), asio::detached);
    }
  });
}

// True once there are no connections; false after `time`, or at deadline_ if that is asked for.
asio::awaitable<bool> Server::Impl::wait_for_end(std::chrono::milliseconds time,
                                                 bool until_deadline) {
  constexpr std::chrono::milliseconds kPoll{5};
  const auto end = Clock::now() + time;
  while (num_connections() > 0) {
    if (Clock::now() >= (until_deadline ? deadline_ : end)) co_return false;
    error_code ignored;
    stop_timer_.expires_after(kPoll);
    co_await stop_timer_.async_wait(into(ignored));
  }
  co_return true;
}

asio::awaitable<void> Server::Impl::shut_down() {
  error_code ignored;
  acceptor_.close(ignored);
  for_each_connection([](Connection& connection) { connection.drain(); });
  bool ended = co_await wait_for_end({}, true);
  if (!ended) {
    for_each_connection([](Connection& connection) { connection.abort(); });
    ended = co_await wait_for_end(kAbortTime, false);
  }
  if (!ended) {
    for_each_connection([](Connection& connection) { connection.close(); });
    ended = co_await wait_for_end(kCloseTime, false);
  }
  if (!ended) spdlog::error("shut-down: {} connections did not end", num_connections());
  io_.stop();
}

void Server::Impl::wait() {
  std::lock_guard lock(join_mutex_);
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

// ---- Server

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() {
  stop(std::chrono::milliseconds(0));
  wait();
}

Result<std::unique_ptr<Server>> Server::start(chat::Service& service, ServerOptions options) {
  SLUICE_TRY_STATUS(check(options));
  auto impl = std::make_unique<Impl>(service, std::move(options));
  SLUICE_TRY_STATUS(impl->listen());
  impl->start_threads();
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  spdlog::info("listening on {}", server->url());
  return server;
}

uint16_t Server::port() const {
  return impl_->port();
}

std::string Server::url() const {
  const std::string& host = impl_->options().host;
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port());
}

void Server::stop(std::chrono::milliseconds grace) {
  impl_->stop(grace);
}
void Server::wait() {
  impl_->wait();
}

}  // namespace sluice::server
