// What is known of a request, for the one log line that it gets.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace sluice::server {

struct RequestLog {
  using Clock = std::chrono::steady_clock;

  std::string id;
  std::string method;
  std::string route = "-";     // the route's pattern, never the client's own text
  int status = 0;              // 0: none was sent
  std::string outcome = "ok";  // "ok", "refused", "failed", "client_gone", "aborted"
  std::string detail;          // of what is not ok: the error message
  int prompt_tokens = 0;
  int completion_tokens = 0;
  size_t bytes_out = 0;  // of the body
  Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> first_token;  // when it was taken from the service

  // "request id=... method=... route=... status=... outcome=... prompt_tokens=... ..."; times in
  // milliseconds; text from outside is quoted and has no control characters.
  std::string line(Clock::time_point end) const;

  // Logs line(now): as a warning if the status is 5xx or the outcome "failed", else as info.
  void write() const;
};

// Text as a quoted log value: control characters, quotes, backslashes and bytes outside ASCII
// become \xNN, and what is longer than `limit` bytes is cut.
std::string quoted_for_log(const std::string& text, size_t limit = 200);

}  // namespace sluice::server
