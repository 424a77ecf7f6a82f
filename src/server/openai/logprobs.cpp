#include "server/openai/logprobs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace sluice::server {
namespace {

using chat::DrawnLogprob;
using chat::Json;
using chat::TokenLogprob;

constexpr double kFloor = -9999;

double finite(double logprob) {
  return std::isnan(logprob) ? kFloor : std::max(logprob, kFloor);
}

// With U+FFFD where the bytes are not UTF-8: the JSON library's own repair, taken back as text.
std::string printable(const std::string& bytes) {
  const std::string json = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(json).get<std::string>();
}

Json entry(const TokenLogprob& token) {
  Json bytes = Json::array();
  for (const unsigned char byte : token.bytes) bytes.push_back(byte);
  return {{"token", printable(token.bytes)},
          {"logprob", finite(token.logprob)},
          {"bytes", std::move(bytes)}};
}

int64_t code_points(const std::string& text) {
  return std::count_if(
      text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

}  // namespace

Json chat_logprobs(const std::vector<DrawnLogprob>& tokens) {
  Json content = Json::array();
  for (const auto& drawn : tokens) {
    Json top = Json::array();
    for (const auto& candidate : drawn.top) top.push_back(entry(candidate));
    Json item = entry(drawn.token);
    item["top_logprobs"] = std::move(top);
    content.push_back(std::move(item));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const std::vector<DrawnLogprob>& tokens, int64_t& offset) {
  Json texts = Json::array(), values = Json::array(), tops = Json::array();
  Json offsets = Json::array();
  for (const auto& drawn : tokens) {
    Json top = Json::object();
    for (const auto& candidate : drawn.top) {
      // Two tokens may print alike; the likelier one, which comes first, keeps the name.
      top.emplace(printable(candidate.bytes), finite(candidate.logprob));
    }
    texts.push_back(printable(drawn.token.bytes));
    values.push_back(finite(drawn.token.logprob));
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += code_points(drawn.token.bytes);
  }
  return {{"tokens", std::move(texts)},
          {"token_logprobs", std::move(values)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

void merge_logprobs(Json& total, const Json& chunk) {
  if (chunk.is_null()) return;
  if (total.is_null()) {
    total = chunk;
    return;
  }
  for (const auto& [key, list] : chunk.items()) {
    if (!list.is_array()) continue;
    for (const auto& item : list) total[key].push_back(item);
  }
}

}  // namespace sluice::server
