#include "server/router.h"

#include <gtest/gtest.h>

#include "server/request_id.h"
#include "server/request_log.h"

namespace sluice::server {
namespace {

Router make_router() {
  const Handler none = [](Exchange&) -> asio::awaitable<void> { co_return; };
  Router router;
  router.add("GET", "/v1/models", none);
  router.add("GET", "/v1/models/*", none);
  router.add("DELETE", "/v1/models/*", none);
  router.add("GET", "/v1/models/special", none);
  router.add("POST", "/v1/x", none);
  return router;
}

TEST(Router, FindsPathsAndTails) {
  const Router router = make_router();
  EXPECT_NE(router.match("GET", "/v1/models").handler, nullptr);
  EXPECT_EQ(router.match("GET", "/v1/models/a/b").tail, "a/b");
  EXPECT_EQ(router.match("GET", "/v1/models/a/b").allow, "GET, HEAD, DELETE, OPTIONS");
  EXPECT_EQ(router.match("GET", "/v1/models/special").pattern, "/v1/models/special");
  EXPECT_EQ(router.match("GET", "/v1/models/").pattern, "");
  EXPECT_EQ(router.match("GET", "/").pattern, "");
}

TEST(Router, TellsAWrongMethodFromAnUnknownPath) {
  const Router router = make_router();
  const auto wrong = router.match("GET", "/v1/x");
  EXPECT_EQ(wrong.handler, nullptr);
  EXPECT_EQ(wrong.pattern, "/v1/x");
  EXPECT_EQ(wrong.allow, "POST, OPTIONS");
  EXPECT_NE(router.match("HEAD", "/v1/models").handler, nullptr);
  EXPECT_EQ(router.match("HEAD", "/v1/x").handler, nullptr);
}

TEST(PercentDecoded, DecodesOrRefuses) {
  EXPECT_EQ(percent_decoded("/a%20b%2Fc"), "/a b/c");
  for (const char* bad : {"%", "%2", "%zz", "%-1", "%00"})
    EXPECT_FALSE(percent_decoded(bad)) << bad;
}

TEST(RequestLog, IsOneLineWhateverTheTextIs) {
  EXPECT_EQ(quoted_for_log("a\"b\\\n\x7F\xC3"), R"("a\x22b\x5c\x0a\x7f\xc3")");
  EXPECT_EQ(quoted_for_log("abcdef", 3), R"("abc...")");
  RequestLog log;
  log.id = "r";
  log.method = "POST";
  log.route = "/v1/x";
  log.status = 200;
  log.prompt_tokens = 3;
  log.completion_tokens = 4;
  log.first_token = log.start + std::chrono::milliseconds(5);
  log.detail = "x\ny";
  EXPECT_EQ(log.line(log.start + std::chrono::milliseconds(20)),
            "request id=r method=POST route=/v1/x status=200 outcome=ok prompt_tokens=3 "
            "completion_tokens=4 bytes=0 first_token_ms=5.0 total_ms=20.0 detail=\"x\\x0ay\"");
}

TEST(RequestId, IsRandomAndFit) {
  const auto id = random_id("req-");
  EXPECT_EQ(id.size(), 28u);
  EXPECT_NE(id, random_id("req-"));
  EXPECT_TRUE(is_fit_request_id(id));
  EXPECT_FALSE(is_fit_request_id(""));
  EXPECT_FALSE(is_fit_request_id("a b"));
  EXPECT_FALSE(is_fit_request_id("a\r\nb"));
  EXPECT_FALSE(is_fit_request_id(std::string(129, 'a')));
}

}  // namespace
}  // namespace sluice::server
