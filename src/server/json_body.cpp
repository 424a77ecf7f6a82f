#include "server/json_body.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::server {
namespace {

using chat::Json;

// Sees the body once without building anything, so that a hostile one is refused before it costs
// memory. nlohmann's SAX interface; false stops the parse.
class LimitCheck : public nlohmann::json_sax<Json> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    if (++keys_.back() <= kMaxJsonKeys) return true;
    return refuse(fmt::format("an object has more than {} keys", kMaxJsonKeys));
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    // The library's text begins with its own name and error number: "[json.exception...] ".
    std::string text = error.what();
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    return refuse(fmt::format("the body is not valid JSON at byte {}: {}", position, text));
  }

 private:
  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }
  bool value() {
    if (++values_ <= kMaxJsonValues) return true;
    return refuse(fmt::format("the body has more than {} JSON values", kMaxJsonValues));
  }
  bool open() {
    keys_.push_back(0);
    if (keys_.size() <= static_cast<size_t>(kMaxJsonDepth)) return value();
    return refuse(fmt::format("the body is nested more than {} levels deep", kMaxJsonDepth));
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  std::vector<size_t> keys_;  // of each open object
  size_t values_ = 0;
  std::string problem_;
};

ApiError bad_body(std::string message) {
  return {.message = std::move(message), .code = "invalid_json"};
}

// Number of bytes of the well-formed character at `at`, 0 if there is none.
size_t utf8_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t k) {
    return at + k < text.size() ? static_cast<unsigned char>(text[at + k]) : 0u;
  };
  const auto tail = [&](size_t k) { return byte(k) >= 0x80 && byte(k) <= 0xBF; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    // No overlong forms, no surrogates.
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return byte(1) >= low && byte(1) <= high && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<size_t> first_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::variant<Json, ApiError> parse_json_object(std::string_view body) {
  if (body.empty()) return bad_body("the body is empty; a JSON object is needed");
  if (const auto at = first_invalid_utf8(body)) {
    return bad_body(fmt::format("the body is not UTF-8 at byte {}", *at));
  }
  LimitCheck check;
  if (!Json::sax_parse(body.begin(), body.end(), &check)) return bad_body(check.problem());
  Json json = Json::parse(body.begin(), body.end());
  if (!json.is_object()) {
    return bad_body(fmt::format("the body is a JSON {}; an object is needed", json.type_name()));
  }
  return json;
}

}  // namespace sluice::server
