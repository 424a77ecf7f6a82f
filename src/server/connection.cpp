#include "server/connection.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <utility>

#include "server/openai/error.h"
#include "server/request_id.h"

namespace sluice::server {
namespace {

// A client may send its next request early; more than this of it waits in the kernel, and then its
// leaving is noticed by a failing write only.
constexpr size_t kMaxEarlyBytes = 64u << 10;
// After an answer that leaves a request unread: how much of it, and how long, is read and thrown
// away so that the client gets to see the answer and no reset.
constexpr size_t kLingerBytes = 64u << 20;
constexpr std::chrono::seconds kLingerTime{5};

// What to answer to a request that could not be read; nothing where no answer is possible.
std::optional<ApiError> read_error(const error_code& error, const ServerOptions& options) {
  if (error == http::error::body_limit) {
    return ApiError{.status = 413,
                    .message = fmt::format("the body is larger than the {} bytes that this server "
                                           "accepts",
                                           options.max_body),
                    .code = "body_too_large"};
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ApiError{.status = 431,
                    .message = fmt::format("the headers are larger than the {} bytes that this "
                                           "server accepts",
                                           options.max_header),
                    .code = "headers_too_large"};
  }
  const bool from_parser =
      error.category() == http::make_error_code(http::error::bad_method).category();
  if (!from_parser || error == http::error::end_of_stream ||
      error == http::error::partial_message) {
    return std::nullopt;
  }
  return ApiError{.message = fmt::format("this is not an HTTP/1.1 request: {}", error.message()),
                  .code = "bad_http"};
}

// The errors below are made here and not where they are sent: g++ 12 miscompiles braced temporaries
// inside co_await expressions.
ApiError shutting_down() {
  return api_error({chat::FailureKind::kShuttingDown, "", "the server is shutting down"});
}

ApiError internal_fault() {
  return api_error({chat::FailureKind::kInternal, "", "the server has a fault; its log says more"});
}

ApiError unknown_path() {
  return {.status = 404,
          .message =
              "there is nothing at this path; see /v1/models, /v1/chat/completions, "
              "/v1/completions, /health",
          .code = "not_found"};
}

ApiError wrong_method(const std::string& allowed) {
  return {.status = 405,
          .message = fmt::format("this path answers to {}", allowed),
          .code = "method_not_allowed"};
}

ApiError too_many_connections(const ServerOptions& options) {
  return {.status = 503,
          .type = "server_error",
          .message = fmt::format("all {} connections of this server are in use; try again later",
                                 options.max_connections),
          .code = "too_many_connections",
          .retry_after = 1};
}

}  // namespace

Connection::Connection(tcp::socket socket, const ServerOptions& options, const Router& router)
    : stream_(std::move(socket)),
      options_(options),
      router_(router),
      timer_(stream_.get_executor()) {}

asio::awaitable<void> Connection::run() {
  try {
    error_code ignored;
    // Tokens are small packets that must not wait for one another.
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    if (options_.send_buffer > 0) {
      stream_.socket().set_option(asio::socket_base::send_buffer_size(options_.send_buffer),
                                  ignored);
    }
    while (!draining_) {
      const bool complete = co_await read_request();
      if (!complete) break;
      co_await answer();
      if (!keep_alive_ || gone_) break;
    }
  } catch (const std::exception& error) {
    // The client is gone, or too slow to take what it asked for.
    spdlog::debug("connection ended: {}", error.what());
  }
  close_now();
}

// ---- reading

// The next request is in request_ if this returns true; else the connection is over.
asio::awaitable<bool> Connection::read_request() {
  error_code error;
  if (buffer_.size() == 0) {
    idle_ = true;
    stream_.expires_after(options_.idle_timeout);
    const size_t n = co_await stream_.async_read_some(buffer_.prepare(4096), into(error));
    idle_ = false;
    if (error) co_return false;
    buffer_.commit(n);
  }
  log_ = {};
  head_sent_ = streaming_ = false;
  version_ = 11;
  request_ = {};
  request_.id = random_id("req-");
  Parser parser;
  parser.header_limit(options_.max_header);
  parser.body_limit(options_.max_body);
  stream_.expires_after(options_.header_timeout);
  co_await http::async_read_header(stream_, buffer_, parser, into(error));
  if (error) co_return co_await refuse_unread(error);
  version_ = parser.get().version();
  stream_.expires_after(options_.body_timeout);
  if (!parser.is_done()) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      const http::response<http::empty_body> go_on(http::status::continue_, version_);
      http::response_serializer<http::empty_body> serializer(go_on);
      co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
    }
    co_await http::async_read(stream_, buffer_, parser, into(error));
    if (error) co_return co_await refuse_unread(error);
  }
  keep_alive_ = parser.get().keep_alive();
  take_request(parser.release());
  co_return true;
}

// Answers a request that could not be read, where that is possible. Always false: the rest of the
// connection cannot be understood.
asio::awaitable<bool> Connection::refuse_unread(const error_code& error) {
  const auto answer = read_error(error, options_);
  if (!answer) {
    spdlog::debug("no complete request: {}", error.message());
    co_return false;
  }
  keep_alive_ = false;
  log_.id = request_.id;
  log_.method = "-";
  log_.outcome = "refused";
  log_.detail = answer->message;
  HttpResponse response = error_response(*answer);
  co_await send(std::move(response));
  log_.write();
  co_await linger();
  co_return false;
}

void Connection::take_request(Parser::value_type message) {
  const auto text = [](auto view) { return std::string(view.data(), view.size()); };
  request_.method = text(message.method_string());
  const std::string target = text(message.target());
  request_.path = percent_decoded(target.substr(0, target.find('?'))).value_or("");
  request_.content_type = text(message[http::field::content_type]);
  origin_ = text(message[http::field::origin]);
  const std::string id = text(message["x-request-id"]);
  if (is_fit_request_id(id)) request_.id = id;
  request_.body = std::move(message.body());
  log_.id = request_.id;
  log_.method = message.method() == http::verb::unknown ? "-" : request_.method;
}

// Lets a client that is still sending finish, so that closing does not reset the connection before
// it has read the answer.
asio::awaitable<void> Connection::linger() {
  error_code error;
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(kLingerTime);
  buffer_.clear();
  for (size_t total = 0; !error && total < kLingerBytes;) {
    total += co_await stream_.async_read_some(buffer_.prepare(64u << 10), into(error));
  }
}

// ---- answering

asio::awaitable<void> Connection::answer() {
  gone_ = watch_ending_ = woken_ = false;
  watching_ = true;
  asio::co_spawn(
      stream_.get_executor(),
      [self = shared_from_this()] { return self->watch(); },
      asio::detached);
  std::exception_ptr failure;
  try {
    co_await dispatch();
  } catch (const boost::system::system_error& error) {
    if (log_.outcome == "ok") log_.outcome = "client_gone";
    keep_alive_ = false;
  } catch (const std::exception& error) {
    log_.outcome = "failed";
    log_.detail = error.what();
    spdlog::error("handler of request {} failed: {}", request_.id, error.what());
    failure = std::current_exception();
  }
  gone_action_ = nullptr;
  if (failure) {
    keep_alive_ = false;
    if (!head_sent_ && !gone_) {
      try {
        HttpResponse response = error_response(internal_fault());
        co_await send(std::move(response));
      } catch (const boost::system::system_error&) {
      }
    }
  }
  if (gone_) log_.outcome = "client_gone";
  log_.write();
  co_await end_watch();
}

asio::awaitable<void> Connection::dispatch() {
  const auto match = router_.match(request_.method, request_.path);
  if (!match.pattern.empty()) log_.route = match.pattern;
  request_.tail = match.tail;
  if (match.handler != nullptr && !draining_) {
    co_await (*match.handler)(*this);
  } else {
    HttpResponse response = answer_without_handler(match);
    co_await send(std::move(response));
  }
}

HttpResponse Connection::answer_without_handler(const Router::Match& match) {
  log_.outcome = "refused";
  if (draining_) return error_response(shutting_down());
  if (match.pattern.empty()) return error_response(unknown_path());
  HttpResponse response;
  if (request_.method == "OPTIONS") {
    log_.outcome = "ok";
    response.status = 204;
    if (!options_.cors_origin.empty()) {
      response.headers = {
          {"Access-Control-Allow-Methods", match.allow},
          {"Access-Control-Allow-Headers", "authorization, content-type, x-request-id"}};
    }
  } else {
    response = error_response(wrong_method(match.allow));
  }
  response.headers.emplace_back("Allow", match.allow);
  return response;
}

http::response<http::string_body> Connection::make_response(HttpResponse head) const {
  http::response<http::string_body> response;
  response.version(version_);
  response.result(static_cast<unsigned>(head.status));
  response.set(http::field::server, "sluice");
  response.set("x-request-id", request_.id);
  if (head.status != 204) response.set(http::field::content_type, head.content_type);
  if (!options_.cors_origin.empty() &&
      (options_.cors_origin == "*" || options_.cors_origin == origin_)) {
    response.set(http::field::access_control_allow_origin, options_.cors_origin);
    response.set(http::field::access_control_expose_headers, "x-request-id");
    if (options_.cors_origin != "*") response.set(http::field::vary, "Origin");
  }
  for (const auto& [name, value] : head.headers) response.set(name, value);
  response.body() = std::move(head.body);
  return response;
}

asio::awaitable<void> Connection::send(HttpResponse head) {
  const int status = head.status;
  const size_t size = head.body.size();
  keep_alive_ = keep_alive_ && !draining_;
  auto response = make_response(std::move(head));
  response.keep_alive(keep_alive_);
  if (status != 204) response.content_length(size);
  http::response_serializer<http::string_body> serializer(response);
  log_.status = status;
  head_sent_ = true;
  stream_.expires_after(options_.write_timeout);
  if (request_.method == "HEAD") {
    co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
  } else {
    log_.bytes_out += size;
    co_await http::async_write(stream_, serializer, asio::use_awaitable);
  }
}

asio::awaitable<void> Connection::begin_stream(HttpResponse head) {
  log_.status = head.status;
  auto whole = make_response(std::move(head));
  http::response<http::empty_body> response(std::move(whole.base()));
  keep_alive_ = keep_alive_ && !draining_ && version_ >= 11;
  response.keep_alive(keep_alive_);
  // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
  response.chunked(version_ >= 11);
  http::response_serializer<http::empty_body> serializer(response);
  head_sent_ = streaming_ = true;
  stream_.expires_after(options_.write_timeout);
  co_await http::async_write_header(stream_, serializer, asio::use_awaitable);
}

asio::awaitable<void> Connection::write(std::string_view bytes) {
  if (bytes.empty()) co_return;  // an empty chunk would end the body
  log_.bytes_out += bytes.size();
  stream_.expires_after(options_.write_timeout);
  const asio::const_buffer buffer(bytes.data(), bytes.size());
  if (version_ >= 11) {
    co_await asio::async_write(stream_, http::make_chunk(buffer), asio::use_awaitable);
  } else {
    co_await asio::async_write(stream_, buffer, asio::use_awaitable);
  }
}

asio::awaitable<void> Connection::end_stream() {
  if (version_ < 11) co_return;
  stream_.expires_after(options_.write_timeout);
  co_await asio::async_write(stream_, http::make_chunk_last(), asio::use_awaitable);
}

// ---- waiting and the watch

asio::awaitable<Wake> Connection::wait(std::chrono::milliseconds timeout) {
  if (!woken_ && !gone_ && !aborting_) {
    error_code ignored;
    timer_.expires_after(timeout);
    co_await timer_.async_wait(into(ignored));
  }
  const bool woken = std::exchange(woken_, false);
  if (gone_) co_return Wake::kGone;
  if (aborting_) co_return Wake::kAbort;
  co_return woken ? Wake::kWaker : Wake::kTimeout;
}

std::function<void()> Connection::waker() {
  return [self = shared_from_this()] {
    // One visit to the strand serves all calls until it has happened.
    if (self->wake_posted_.exchange(true)) return;
    asio::post(self->stream_.get_executor(), [self] {
      self->wake_posted_ = false;
      self->wake();
    });
  };
}

void Connection::wake() {
  woken_ = true;
  timer_.cancel();
}

// Reads while a handler works, for the end of the connection; what else comes is the next request.
asio::awaitable<void> Connection::watch() {
  error_code error;
  while (!error && !watch_ending_ && buffer_.size() < kMaxEarlyBytes) {
    // Past the stream's timers, which are for the writes that go on meanwhile.
    const size_t n = co_await stream_.socket().async_read_some(buffer_.prepare(4096), into(error));
    buffer_.commit(n);
  }
  if (error && !watch_ending_) client_left();
  watching_ = false;
  timer_.cancel();
}

void Connection::client_left() {
  gone_ = true;
  if (auto action = std::exchange(gone_action_, nullptr)) action();
  close_now();  // ends a write that waits for the client
}

asio::awaitable<void> Connection::end_watch() {
  watch_ending_ = true;
  error_code ignored;
  if (watching_) stream_.socket().cancel(ignored);
  while (watching_) {
    timer_.expires_after(std::chrono::hours(1));
    co_await timer_.async_wait(into(ignored));
  }
}

// ---- the end

asio::awaitable<void> Connection::refuse() {
  keep_alive_ = false;
  request_.id = random_id("req-");
  try {
    HttpResponse response = error_response(too_many_connections(options_));
    co_await send(std::move(response));
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  } catch (const std::exception& error) {
    spdlog::debug("connection refused, unheard: {}", error.what());
  }
  close_now();
}

void Connection::drain() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->draining_ = true;
    if (self->idle_) self->close_now();
  });
}

void Connection::abort() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->draining_ = self->aborting_ = true;
    self->timer_.cancel();
  });
}

void Connection::close() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->close_now(); });
}

void Connection::close_now() {
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace sluice::server
