#include "server/router.h"

#include <charconv>
#include <utility>

namespace sluice::server {
namespace {

// The part of `path` that "*" of the pattern stands for; empty for an exact match.
std::optional<std::string> tail_of(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with("/*")) {
    const auto prefix = pattern.substr(0, pattern.size() - 1);
    if (path.size() > prefix.size() && path.starts_with(prefix)) {
      return std::string(path.substr(prefix.size()));
    }
    return std::nullopt;
  }
  return pattern == path ? std::optional<std::string>("") : std::nullopt;
}

}  // namespace

void Router::add(std::string method, std::string pattern, Handler handler) {
  routes_.push_back({std::move(method), std::move(pattern), std::move(handler)});
}

Router::Match Router::match(std::string_view method, std::string_view path) const {
  Match match;
  for (const auto& route : routes_) {
    auto tail = tail_of(route.pattern, path);
    if (!tail) continue;
    const bool better = match.pattern.empty() || match.pattern.ends_with("*");
    if (match.pattern != route.pattern) {
      if (!better) continue;
      match = {nullptr, route.pattern, std::move(*tail), ""};
    }
    if (route.method == method || (route.method == "GET" && method == "HEAD")) {
      match.handler = &route.handler;
    }
    match.allow += route.method + ", ";
    if (route.method == "GET") match.allow += "HEAD, ";
  }
  if (!match.pattern.empty()) match.allow += "OPTIONS";
  return match;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const char* digits = text.data() + i + 1;
    const auto [end, code] = std::from_chars(digits, digits + 2, value, 16);
    if (code != std::errc() || end != digits + 2 || value == 0) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

}  // namespace sluice::server
