// Sockets, timers and HTTP of Boost.Asio and Boost.Beast, for the files that do input and output.
#pragma once

// clang-format off
#include "server/asio.h"  // first: it mends what the others need
// clang-format on

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

namespace sluice::server {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// A completion token that gives the error instead of throwing it.
inline auto into(error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

}  // namespace sluice::server
