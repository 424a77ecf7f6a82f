// Which handler answers a path and a method.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/asio.h"
#include "server/exchange.h"

namespace sluice::server {

// Answers the request of the exchange. What it throws ends the exchange: with status 500 if nothing
// has been sent, else by closing the connection.
using Handler = std::function<asio::awaitable<void>(Exchange&)>;

class Router {
 public:
  // pattern: a path, or one that ends in "/*", which stands for one or more characters. HEAD is
  // answered by the GET handler.
  void add(std::string method, std::string pattern, Handler handler);

  struct Match {
    const Handler* handler = nullptr;  // null: no such path, or not with this method
    std::string pattern;               // empty: no such path
    std::string tail;                  // what "*" stands for
    std::string allow;                 // methods of the path: "GET, HEAD, OPTIONS"
  };
  // A pattern without "*" wins over one with it. The result refers to this router.
  Match match(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string pattern;
    Handler handler;
  };
  std::vector<Route> routes_;
};

// "a%20b" -> "a b"; nothing if a "%" is not followed by two hex digits or stands for NUL.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace sluice::server
