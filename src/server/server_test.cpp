// The whole server over sockets, with the null service behind it.
#include "server/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "chat/null_service.h"
#include "server/http_test_client.h"

namespace sluice::server {
namespace {

using chat::NullService;
using chat::NullServiceOptions;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

const std::string kChat = "/v1/chat/completions";
const std::string kCompletions = "/v1/completions";
// Goes on until the context is full.
const std::string kEndless =
    R"({"prompt": "abcd", "max_tokens": 1000000, "ignore_eos": true, "stream": true})";

std::string chat_body(const std::string& content, const std::string& more = "") {
  return R"({"messages": [{"role": "user", "content": ")" + content + "\"}]" +
         (more.empty() ? "" : ", " + more) + "}";
}

// The text of all content deltas of a stream.
std::string streamed_text(const std::string& body) {
  std::string text;
  for (size_t at = 0; (at = body.find("data: {", at)) != std::string::npos; ++at) {
    const auto chunk = nlohmann::json::parse(body.substr(at + 6, body.find("\n\n", at) - at - 6));
    for (const auto& choice : chunk.value("choices", nlohmann::json::array())) {
      text += choice.contains("delta") ? choice["delta"].value("content", "")
                                       : choice.value("text", "");
    }
  }
  return text;
}

bool eventually(const std::function<bool()>& condition,
                milliseconds patience = milliseconds(15'000)) {
  const auto end = steady_clock::now() + patience;
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

class ServerTest : public testing::Test {
 protected:
  // Tests change these before start().
  NullServiceOptions null_options;
  ServerOptions options;

  void SetUp() override {
    options.port = 0;
    null_options.model.context_length = 1 << 14;
  }
  void start() {
    service = std::make_unique<NullService>(null_options);
    auto started = Server::start(*service, options);
    ASSERT_TRUE(started.ok()) << started.error().message;
    server = std::move(started).value();
  }
  uint16_t port() const { return server->port(); }
  TestResponse ask(const std::string& path,
                   const std::string& body,
                   const std::string& headers = "") {
    TestClient client(port());
    client.post(path, body, headers);
    return client.read_response();
  }
  bool all_free() {
    return eventually([&] {
      const auto health = service->health();
      return health.running == 0 && health.queued == 0;
    });
  }

  std::unique_ptr<NullService> service;
  std::unique_ptr<Server> server;  // destroyed first
};

// ---- answers

TEST_F(ServerTest, AnswersAChat) {
  start();
  const auto response = ask(kChat, chat_body("hello world"), "X-Request-Id: mine-1\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.has_header("x-request-id: mine-1"));
  EXPECT_TRUE(response.has_header("Content-Type: application/json"));
  const auto json = response.json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["model"], "null");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "hello world");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(json["usage"]["total_tokens"], 6);
  EXPECT_THAT(json["id"].get<std::string>(), testing::StartsWith("chatcmpl-"));
}

TEST_F(ServerTest, StreamsWhatItWouldSendWhole) {
  start();
  const std::string more = R"("max_tokens": 40, "ignore_eos": true, "logprobs": true)";
  const auto whole = ask(kChat, chat_body("naïve café 😀", more)).json();
  const auto stream =
      ask(kChat,
          chat_body("naïve café 😀",
                    more + R"(, "stream": true, "stream_options": {"include_usage": true})"));
  EXPECT_EQ(stream.status, 200);
  EXPECT_TRUE(stream.complete);
  EXPECT_TRUE(stream.has_header("Content-Type: text/event-stream"));
  EXPECT_EQ(streamed_text(stream.body), whole["choices"][0]["message"]["content"]);
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
  EXPECT_THAT(
      stream.body,
      HasSubstr("\"usage\":" + nlohmann::ordered_json::parse(
                                   ask(kChat, chat_body("naïve café 😀", more)).body)["usage"]
                                   .dump()));
}

TEST_F(ServerTest, AnswersSeveralPromptsInOneResponse) {
  start();
  const auto json = ask(kCompletions, R"({"prompt": ["first", [1, 2], "third"]})").json();
  ASSERT_EQ(json["choices"].size(), 3u);
  EXPECT_EQ(json["choices"][0]["text"], "first");
  EXPECT_EQ(json["choices"][1]["text"], "001 002 ");
  EXPECT_EQ(json["choices"][2]["index"], 2);
  const auto stream = ask(kCompletions, R"({"prompt": ["ab", "cd"], "stream": true})");
  EXPECT_THAT(stream.body, HasSubstr(R"({"text":"cd","index":1,)"));
  EXPECT_TRUE(stream.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, AcceptsAllPromptsOrNone) {
  null_options.max_running = 1;
  null_options.queue_limit = 1;
  null_options.tokens_per_second = 2;
  start();
  const auto response = ask(kCompletions, R"({"prompt": ["aaaaaaaaaaaa", "b", "c"]})");
  EXPECT_EQ(response.status, 503);
  EXPECT_TRUE(response.has_header("Retry-After: 1"));
  EXPECT_EQ(response.json()["error"]["code"], "queue_full");
  EXPECT_TRUE(all_free());
}

TEST_F(ServerTest, ListsModelsAndHealth) {
  null_options.model.id = "org/model one";
  start();
  TestClient client(port());
  client.get("/v1/models");
  EXPECT_EQ(client.read_response().json()["data"][0]["id"], "org/model one");
  client.get("/v1/models/org%2Fmodel%20one?x=1");
  const auto shown = client.read_response();
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(shown.json()["context_length"], 1 << 14);
  client.get("/v1/models/other");
  EXPECT_EQ(client.read_response().json()["error"]["code"], "model_not_found");
  client.send("HEAD /health HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(client.read_response(true).status, 200);
  client.get("/health");
  EXPECT_EQ(client.read_response().json()["status"], "ok");
  service->break_down("the step failed");
  client.get("/health");
  const auto failing = client.read_response();
  EXPECT_EQ(failing.status, 503);
  EXPECT_EQ(failing.json()["reason"], "the step failed");
}

// ---- refusals: the connection stays usable after each

struct BadRequest {
  std::string name;
  std::string raw;  // the whole request
  int status;
  std::string message;  // a part of the body
};

std::string raw_post(const std::string& path,
                     const std::string& body,
                     const std::string& type = "application/json") {
  return "POST " + path + " HTTP/1.1\r\nHost: t\r\nContent-Type: " + type +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST_F(ServerTest, RefusesMalformedRequestsAndGoesOn) {
  null_options.model.context_length = 8;
  start();
  const BadRequest cases[] = {
      {"bad JSON", raw_post(kChat, "{\"a\": "), 400, "not valid JSON at byte"},
      {"bad UTF-8", raw_post(kChat, "{\"a\": \"\xFF\"}"), 400, "not UTF-8 at byte 7"},
      {"empty", raw_post(kChat, ""), 400, "the body is empty"},
      {"wrong type",
       raw_post(kChat, chat_body("a", R"("top_p": "x")")),
       400,
       "\"param\":\"top_p\""},
      {"negative max_tokens",
       raw_post(kChat, chat_body("a", R"("max_tokens": -5)")),
       400,
       "max_tokens"},
      {"n", raw_post(kChat, chat_body("a", R"("n": 2)")), 400, "\"code\":\"unsupported_value\""},
      {"unknown model",
       raw_post(kChat, chat_body("a", R"("model": "gpt-5")")),
       404,
       "model_not_found"},
      {"long prompt",
       raw_post(kChat, chat_body(std::string(100, 'a'))),
       400,
       "the prompt has 25 tokens, but the context holds 8"},
      {"form",
       raw_post(kChat, chat_body("a"), "application/x-www-form-urlencoded"),
       415,
       "application/json"},
      {"unknown path", raw_post("/v2/chat", "{}"), 404, "not_found"},
      {"bad escape", raw_post("/v1/%zz", "{}"), 404, "not_found"},
      {"wrong method", "GET " + kChat + " HTTP/1.1\r\nHost: t\r\n\r\n", 405, "POST, OPTIONS"},
      {"wrong method of models", raw_post("/v1/models", "{}"), 405, "GET, HEAD, OPTIONS"},
  };
  TestClient client(port());
  for (const auto& bad : cases) {
    client.send(bad.raw);
    const auto response = client.read_response();
    EXPECT_EQ(response.status, bad.status) << bad.name;
    EXPECT_THAT(response.body, HasSubstr(bad.message)) << bad.name;
    EXPECT_TRUE(response.json()["error"]["message"].is_string()) << bad.name;
    EXPECT_TRUE(response.has_header("x-request-id: req-")) << bad.name;
    EXPECT_EQ(response.has_header("Allow: "), bad.status == 405) << bad.name;
  }
  client.post(kChat, chat_body("ok"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST_F(ServerTest, RefusesWhatIsNotHttp) {
  start();
  for (const char* raw :
       {"\x16\x03\x01\x02 TLS\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: t\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"}) {
    TestClient client(port());
    client.send(raw);
    const auto response = client.read_response();
    EXPECT_EQ(response.status, 400) << raw;
    EXPECT_TRUE(response.has_header("Connection: close")) << raw;
    EXPECT_TRUE(client.wait_closed()) << raw;
  }
}

TEST_F(ServerTest, RefusesLargeBodiesAndHeaders) {
  start();
  // 10 MB, sent whole before the answer is read, as simple clients do.
  const auto body = chat_body(std::string(10'000'000, 'a'));
  const auto large = ask(kChat, body);
  EXPECT_EQ(large.status, 413);
  EXPECT_THAT(large.body, HasSubstr("8388608 bytes"));

  TestClient chunked(port());
  chunked.send("POST " + kChat + " HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
  chunked.send("989680\r\n");
  chunked.send(std::string(10'000'000, ' '));
  EXPECT_EQ(chunked.read_response().status, 413);

  TestClient headers(port());
  headers.send("GET /health HTTP/1.1\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n");
  EXPECT_EQ(headers.read_response().status, 431);

  TestClient waiting(port());
  waiting.send("POST " + kChat +
               " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 20000000\r\n\r\n");
  EXPECT_EQ(waiting.read_response().status, 413);
}

TEST_F(ServerTest, TellsAWaitingClientToGoOn) {
  start();
  TestClient client(port());
  const auto body = chat_body("hi");
  client.send("POST " + kChat + " HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n");
  ASSERT_TRUE(client.read_until("100 Continue\r\n\r\n"));
  client.send(body);
  ASSERT_TRUE(client.read_until("200 OK"));
}

TEST_F(ServerTest, RefusesWhatIsOverTheConnectionLimit) {
  options.max_connections = 2;
  start();
  TestClient first(port()), second(port());
  for (auto* client : {&first, &second}) {
    client->get("/health");
    EXPECT_EQ(client->read_response().status, 200);
  }
  {
    TestClient third(port());
    EXPECT_EQ(third.read_response().json()["error"]["code"], "too_many_connections");
    EXPECT_TRUE(third.wait_closed());
  }
  first.close();
  EXPECT_TRUE(eventually([&] {
    TestClient client(port());
    client.get("/health");
    return client.read_response().status == 200;
  }));
}

TEST_F(ServerTest, AnswersPreflightsOfTheAllowedOriginOnly) {
  options.cors_origin = "https://app.example";
  start();
  TestClient client(port());
  client.send("OPTIONS " + kChat + " HTTP/1.1\r\nHost: t\r\nOrigin: https://app.example\r\n\r\n");
  auto response = client.read_response();
  EXPECT_EQ(response.status, 204);
  EXPECT_TRUE(response.has_header("Access-Control-Allow-Origin: https://app.example"));
  EXPECT_TRUE(response.has_header("Access-Control-Allow-Headers: authorization, content-type"));
  client.send("OPTIONS " + kChat + " HTTP/1.1\r\nHost: t\r\nOrigin: https://evil.example\r\n\r\n");
  response = client.read_response();
  EXPECT_FALSE(response.has_header("Access-Control-Allow-Origin"));
}

// ---- connections

TEST_F(ServerTest, ServesPipelinedRequestsInOrder) {
  start();
  TestClient client(port());
  client.send(raw_post(kChat, chat_body("one", R"("stream": true)")) +
              raw_post(kChat, chat_body("two")) + "GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_EQ(streamed_text(client.read_response().body), "one");
  EXPECT_EQ(client.read_response().json()["choices"][0]["message"]["content"], "two");
  EXPECT_EQ(client.read_response().json()["status"], "ok");
}

TEST_F(ServerTest, SpeaksHttp10) {
  start();
  TestClient client(port());
  const auto body = chat_body("hello", R"("stream": true)");
  client.send("POST " + kChat + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_FALSE(response.has_header("Transfer-Encoding"));
  EXPECT_EQ(streamed_text(response.body), "hello");
}

TEST_F(ServerTest, ClosesConnectionsThatDripOrIdle) {
  options.header_timeout = milliseconds(300);
  options.body_timeout = milliseconds(300);
  options.idle_timeout = milliseconds(600);
  start();
  TestClient idle(port());
  TestClient body(port());
  body.send("POST " + kChat + " HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{");
  TestClient drip(port());
  const std::string request = "GET /health HTTP/1.1\r\nX-Slow: " + std::string(1000, 'a');
  size_t sent = 0;
  const auto begin = steady_clock::now();
  // One byte at a time does not prolong the time that there is for the whole head.
  while (sent < request.size() && drip.send(request.substr(sent, 1))) {
    ++sent;
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_LT(sent, request.size());
  EXPECT_LT(steady_clock::now() - begin, milliseconds(10'000));
  EXPECT_TRUE(body.wait_closed());
  EXPECT_TRUE(idle.wait_closed());
}

TEST_F(ServerTest, CommentsKeepASilentStreamAlive) {
  options.keepalive = milliseconds(50);
  null_options.script = [](const chat::ChatRequest&) {
    chat::NullScript script{chat::PrefillProgress{1, 2}};
    script.push_back(chat::TextDelta{chat::Channel::kContent, "x", {}});
    script.push_back(chat::Finished{});
    return script;
  };
  null_options.tokens_per_second = 3;
  start();
  const auto response = ask(kChat, chat_body("a", R"("stream": true)"));
  EXPECT_THAT(response.body, HasSubstr(": keepalive 1/2\n\n"));
  EXPECT_THAT(response.body, HasSubstr(": keepalive\n\n: keepalive\n\n"));
  EXPECT_EQ(streamed_text(response.body), "x");
}

// ---- failures

TEST_F(ServerTest, FailuresHaveTheirStatusUntilTheStreamHasBegun) {
  null_options.script = [](const chat::ChatRequest& request) {
    chat::NullScript script;
    if (!request.stop.empty()) script.push_back(chat::TextDelta{chat::Channel::kContent, "x", {}});
    script.push_back(chat::Failure{chat::FailureKind::kInternal, "", "step 7 failed"});
    return script;
  };
  start();
  for (const std::string stream : {"true", "false"}) {
    const auto early = ask(kChat, chat_body("a", "\"stream\": " + stream));
    EXPECT_EQ(early.status, 500);
    EXPECT_EQ(early.json()["error"]["message"], "step 7 failed");
  }
  const auto late = ask(kChat, chat_body("a", R"("stream": true, "stop": "s")"));
  // The two events may come in one write, but the stream has begun with the first.
  EXPECT_THAT(late.body, HasSubstr("step 7 failed"));
  EXPECT_THAT(late.body, testing::Not(HasSubstr("[DONE]")));
}

// ---- clients that leave or lag

TEST_F(ServerTest, AClientThatLeavesFreesItsRow) {
  null_options.tokens_per_second = 200;
  start();
  {
    TestClient streaming(port());
    streaming.post(kCompletions, kEndless);
    ASSERT_TRUE(streaming.read_until("data: "));
    EXPECT_EQ(service->health().running, 1);
  }
  EXPECT_TRUE(all_free());
  {
    // Nothing is ever written to this one before its end, so only reading shows that it has left.
    TestClient waiting(port());
    waiting.post(kCompletions, R"({"prompt": "abcd", "max_tokens": 1000000, "ignore_eos": true})");
    ASSERT_TRUE(eventually([&] { return service->health().running == 1; }));
  }
  EXPECT_TRUE(all_free());
  EXPECT_EQ(service->counts().cancelled, 2);
}

TEST_F(ServerTest, AReaderThatStopsIsCancelledAndHoldsNobodyUp) {
  null_options.tokens_per_second = 2000;
  null_options.channel_capacity = 64;
  options.send_buffer = 4096;
  start();
  TestClient stuck(port(), 4096);
  stuck.post(kCompletions, kEndless);
  ASSERT_TRUE(eventually([&] { return service->health().running == 1; }));
  const auto brisk = ask(kChat, chat_body(std::string(200, 'b'), R"("stream": true)"));
  EXPECT_EQ(streamed_text(brisk.body), std::string(200, 'b'));
  EXPECT_TRUE(eventually([&] { return service->counts().cancelled == 1; }));
  EXPECT_TRUE(all_free());
  // Its connection is still there; when it reads on it is told why the stream ends.
  const auto response = stuck.read_response();
  EXPECT_THAT(response.body, HasSubstr("slow_consumer"));
}

TEST_F(ServerTest, AReaderThatNeverReadsLosesItsConnection) {
  null_options.tokens_per_second = 5000;
  // Much more than the socket's buffers hold: the writer must be stuck when the channel is full.
  null_options.channel_capacity = 2000;
  options.send_buffer = 4096;
  options.write_timeout = milliseconds(300);
  start();
  TestClient stuck(port(), 4096);
  stuck.post(kCompletions, kEndless);
  EXPECT_TRUE(eventually([&] { return service->counts().cancelled == 1; }));
  std::this_thread::sleep_for(milliseconds(1000));
  const auto response = stuck.read_response();
  EXPECT_FALSE(response.complete);
}

// ---- shutting down

TEST_F(ServerTest, StopLetsRunningResponsesFinish) {
  null_options.tokens_per_second = 100;
  start();
  TestClient idle(port());
  TestClient busy(port());
  busy.post(kChat, chat_body(std::string(200, 'x'), R"("stream": true)"));
  ASSERT_TRUE(busy.read_until("data: "));
  server->stop(milliseconds(20'000));
  EXPECT_TRUE(idle.wait_closed());
  const auto response = busy.read_response();
  EXPECT_EQ(streamed_text(response.body), std::string(200, 'x'));
  EXPECT_TRUE(busy.wait_closed());
  server->wait();
  EXPECT_FALSE(TestClient(port()).connected());
}

TEST_F(ServerTest, StopEndsWhatIsNotDoneInTime) {
  null_options.tokens_per_second = 50;
  start();
  TestClient streaming(port()), waiting(port());
  streaming.post(kCompletions, kEndless);
  waiting.post(kCompletions, R"({"prompt": "abcd", "max_tokens": 1000000, "ignore_eos": true})");
  ASSERT_TRUE(streaming.read_until("data: "));
  ASSERT_TRUE(eventually([&] { return service->health().running == 2; }));
  const auto begin = steady_clock::now();
  server->stop(milliseconds(60'000));
  server->stop(milliseconds(100));  // the shorter one wins
  const auto ended = streaming.read_response();
  EXPECT_TRUE(ended.complete);
  EXPECT_THAT(ended.body, HasSubstr("\"code\":\"shutting_down\""));
  EXPECT_EQ(waiting.read_response().status, 503);
  server->wait();
  EXPECT_LT(steady_clock::now() - begin, milliseconds(15'000));
  EXPECT_TRUE(all_free());
}

TEST(ServerStart, SaysWhyItCannot) {
  NullService service({});
  ServerOptions options;
  options.port = 0;
  auto first = Server::start(service, options);
  ASSERT_TRUE(first.ok());
  options.port = (*first)->port();
  auto second = Server::start(service, options);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on 127.0.0.1:"));
  options.host = std::string(300, 'a');  // too long for any name, so nothing is asked
  EXPECT_THAT(Server::start(service, options).error().message, HasSubstr("cannot resolve"));
  options.threads = 0;
  EXPECT_THAT(Server::start(service, options).error().message, HasSubstr("server threads is 0"));
}

}  // namespace
}  // namespace sluice::server
