#include "server/json_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

using testing::HasSubstr;

std::string message_of(std::string_view body) {
  auto result = parse_json_object(body);
  const auto* error = std::get_if<ApiError>(&result);
  if (error == nullptr) return "accepted";
  EXPECT_EQ(error->status, 400);
  return error->message;
}

TEST(FirstInvalidUtf8, FindsTheFirstBadByte) {
  EXPECT_FALSE(first_invalid_utf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xED\x9F\xBF"));
  const std::pair<std::string, size_t> cases[] = {
      {"ab\x80", 2},             // a tail without a lead
      {"\xC0\xAF", 0},           // overlong
      {"x\xE0\x9F\xBF", 1},      // overlong
      {"\xED\xA0\x80", 0},       // surrogate
      {"\xF4\x90\x80\x80", 0},   // past U+10FFFF
      {"\xF5\x80\x80\x80", 0},   // no lead
      {"\xF0\x9F\x98", 0},       // cut off at the end
      {"\xC3\xA9\xC3", 2},       // cut off after a good one
      {"\xF0\x9F\x98 \x80", 0},  // cut off by another character
  };
  for (const auto& [text, at] : cases) {
    ASSERT_TRUE(first_invalid_utf8(text)) << text;
    EXPECT_EQ(*first_invalid_utf8(text), at) << text;
  }
}

TEST(ParseJsonObject, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message_of(R"({"a": [1, null]})"), "accepted");
  EXPECT_THAT(message_of(""), HasSubstr("empty"));
  EXPECT_THAT(message_of("[1]"), HasSubstr("a JSON array"));
  EXPECT_THAT(message_of("\"text\""), HasSubstr("a JSON string"));
  EXPECT_THAT(message_of(R"({"a": 1)"), HasSubstr("at byte 8"));
  EXPECT_THAT(message_of(R"({"a": 1} x)"), HasSubstr("at byte 10"));
  EXPECT_THAT(message_of(R"({"a": NaN})"), HasSubstr("not valid JSON at byte"));
  EXPECT_THAT(message_of(R"({"a": Infinity})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(message_of(R"({"a": 1e999})"), HasSubstr("number overflow"));
  EXPECT_THAT(message_of("{\"a\": \"\xFF\"}"), HasSubstr("not UTF-8 at byte 7"));
  EXPECT_THAT(message_of(R"({"a": "\ud800"})"), HasSubstr("not valid JSON"));
}

TEST(ParseJsonObject, RefusesWhatWouldBeCostly) {
  const auto nested = [](int depth) {
    return R"({"a":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(message_of(nested(kMaxJsonDepth)), "accepted");
  EXPECT_THAT(message_of(nested(kMaxJsonDepth + 1)), HasSubstr("more than 64 levels"));
  EXPECT_THAT(message_of(std::string(1 << 20, '[')), HasSubstr("more than 64 levels"));

  const auto keys = [](size_t count) {
    std::string body = "{";
    for (size_t i = 0; i < count; ++i) body += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
    return body + "}";
  };
  EXPECT_EQ(message_of(keys(kMaxJsonKeys)), "accepted");
  EXPECT_THAT(message_of(keys(kMaxJsonKeys + 1)), HasSubstr("more than 1024 keys"));

  std::string values = R"({"a":[0)";
  for (size_t i = 3; i < kMaxJsonValues; ++i) values += ",0";
  EXPECT_EQ(message_of(values + "]}"), "accepted");
  EXPECT_THAT(message_of(values + ",0]}"), HasSubstr("more than 1048576 JSON values"));
}

TEST(ParseJsonObject, KeepsTheOrderOfKeys) {
  const auto result = parse_json_object(R"({"z": 1, "a": 2, "m": 3})");
  EXPECT_EQ(std::get<chat::Json>(result).dump(), R"({"z":1,"a":2,"m":3})");
}

}  // namespace
}  // namespace sluice::server
