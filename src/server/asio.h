// Coroutines of Boost.Asio, the way in for every file: Boost 1.74's awaitable.hpp uses
// std::exchange without <utility>, which g++ 12 no longer includes by chance, so it must come
// first.
//
// Only this much for handlers; sockets and Beast, which cost seconds to compile, are in beast.h.
#pragma once

// clang-format off
#include <utility>
// clang-format on

#include <boost/asio/awaitable.hpp>

namespace sluice::server {

namespace asio = boost::asio;

}  // namespace sluice::server
