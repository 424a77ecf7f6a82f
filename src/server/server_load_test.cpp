// Many clients at once, well and badly behaved, against the null service on 127.0.0.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "chat/null_service.h"
#include "server/http_test_client.h"
#include "server/server.h"

namespace sluice::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kStreams = 100;
constexpr int kTokens = 100;

std::string stream_body(int tokens) {
  return R"({"prompt": "abcd", "ignore_eos": true, "stream": true, "max_tokens": )" +
         std::to_string(tokens) + "}";
}

// 100 streams, every fifth of which leaves in the middle, beside 5 clients that do not read and 5
// that never finish their request; somebody asks for the health all the while.
TEST(ServerLoad, HundredStreamsWithAbortsSlowReadersAndSlowloris) {
  chat::NullServiceOptions null_options;
  null_options.model.context_length = 1 << 16;
  null_options.max_running = 128;
  null_options.tokens_per_second = 200;
  null_options.channel_capacity = 256;
  chat::NullService service(null_options);
  ServerOptions options;
  options.port = 0;
  options.send_buffer = 4096;
  options.header_timeout = milliseconds(500);
  auto started = Server::start(service, options);
  ASSERT_TRUE(started.ok()) << started.error().message;
  auto server = std::move(started).value();
  const uint16_t port = server->port();

  std::vector<std::unique_ptr<TestClient>> slow, loris;
  for (int i = 0; i < 5; ++i) {
    slow.push_back(std::make_unique<TestClient>(port, 4096));
    slow.back()->post("/v1/completions", stream_body(1 << 15));
    loris.push_back(std::make_unique<TestClient>(port));
    loris.back()->send("POST /v1/completions HTTP/1.1\r\nHost: t\r\nX-Sl");
  }

  std::atomic<int> complete{0}, wrong{0}, aborted{0}, healthy{0}, unhealthy{0};
  std::atomic<bool> over{false};
  std::thread watcher([&] {
    while (!over) {
      TestClient client(port);
      client.get("/health");
      const auto response = client.read_response();
      ++(response.status == 200 ? healthy : unhealthy);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  std::vector<std::thread> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back([&, i] {
      TestClient client(port);
      client.post("/v1/completions", stream_body(kTokens));
      if (i % 5 == 0) {
        client.read_until("data: ");
        ++aborted;
        return;
      }
      const auto response = client.read_response();
      size_t texts = 0;
      for (size_t at = 0; (at = response.body.find("\"text\":\"abcd\"", at)) != std::string::npos;
           ++at) {
        ++texts;
      }
      const bool good =
          response.complete && texts == kTokens && response.body.ends_with("[DONE]\n\n");
      ++(good ? complete : wrong);
    });
  }
  for (auto& client : clients) client.join();
  for (auto& client : loris) EXPECT_TRUE(client->wait_closed());
  // The slow readers are cancelled while they are still connected.
  const auto deadline = steady_clock::now() + milliseconds(60'000);
  while (service.health().running > 0 && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  over = true;
  watcher.join();

  EXPECT_EQ(complete, kStreams * 4 / 5);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(aborted, kStreams / 5);
  EXPECT_GT(healthy, 5);
  EXPECT_EQ(unhealthy, 0);
  EXPECT_EQ(service.health().running, 0);
  EXPECT_EQ(service.health().queued, 0);
  const auto counts = service.counts();
  EXPECT_EQ(counts.accepted, kStreams + 5);
  EXPECT_EQ(counts.finished + counts.cancelled, counts.accepted);
  EXPECT_GE(counts.cancelled, 5);
}

// Resident memory of this process in bytes (Linux).
size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(ServerLoad, MemoryIsFlatOverManyRequests) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  chat::NullService service({});
  ServerOptions options;
  options.port = 0;
  auto server = std::move(Server::start(service, options)).value();
  const auto round = [&](int requests) {
    for (int i = 0; i < requests; ++i) {
      TestClient client(server->port());
      client.post("/v1/completions", stream_body(20));
      if (i % 3 == 0) continue;  // leaves at once
      ASSERT_EQ(client.read_response().status, 200);
    }
  };
  round(300);
  const size_t before = resident_bytes();
  round(1500);
  EXPECT_LT(resident_bytes(), before + (4u << 20));
}

}  // namespace
}  // namespace sluice::server
