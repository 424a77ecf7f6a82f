#include "server/request_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace sluice::server {
namespace {

double milliseconds(RequestLog::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

std::string quoted_for_log(const std::string& text, size_t limit) {
  std::string out = "\"";
  for (const unsigned char c : text.substr(0, limit)) {
    if (c < 0x20 || c >= 0x7F || c == '"' || c == '\\') {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + (text.size() > limit ? "...\"" : "\"");
}

std::string RequestLog::line(Clock::time_point end) const {
  std::string text = fmt::format(
      "request id={} method={} route={} status={} outcome={}", id, method, route, status, outcome);
  if (prompt_tokens > 0 || completion_tokens > 0) {
    text += fmt::format(" prompt_tokens={} completion_tokens={}", prompt_tokens, completion_tokens);
  }
  text += fmt::format(" bytes={}", bytes_out);
  if (first_token)
    text += fmt::format(" first_token_ms={:.1f}", milliseconds(*first_token - start));
  text += fmt::format(" total_ms={:.1f}", milliseconds(end - start));
  if (!detail.empty()) text += fmt::format(" detail={}", quoted_for_log(detail));
  return text;
}

void RequestLog::write() const {
  const bool alarming = status >= 500 || outcome == "failed";
  spdlog::log(alarming ? spdlog::level::warn : spdlog::level::info, "{}", line(Clock::now()));
}

}  // namespace sluice::server
