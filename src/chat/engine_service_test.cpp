// The service over the real engine with the default model.
#include "chat/engine_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

namespace sluice::chat {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kPatience{60'000};

std::string model_path() {
  if (const char* path = std::getenv("SLUICE_DEFAULT_MODEL")) return path;
  return std::string(SLUICE_SOURCE_DIR) + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

struct Answer {
  std::string text;
  std::vector<DrawnLogprob> logprobs;
  std::optional<Finished> finished;
  std::optional<Failure> failure;
};

// One engine for all cases: loading takes longer than answering.
class EngineServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    engine::EngineOptions options;
    options.model = model_path();
    options.cache_tokens = 512;
    options.max_rows = 1;
    options.queue_limit = 1;
    auto loaded = engine::Engine::load(options);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message << " (`make setup` fetches the model)";
    engine_ = std::move(loaded).value();
  }
  static void TearDownTestSuite() { engine_.reset(); }

  static std::unique_ptr<EngineService> make(EngineServiceOptions options = {}) {
    return std::move(EngineService::create(*engine_, std::move(options))).value();
  }

  static ChatRequest ask(const std::string& text, int max_tokens = 16) {
    ChatRequest request;
    Messages messages;
    messages.messages = Json::array({{{"role", "user"}, {"content", text}}});
    request.prompt = std::move(messages);
    request.max_tokens = max_tokens;
    request.sampling.temperature = 0;
    return request;
  }

  static Answer read(Submission submission) {
    Answer answer;
    if (auto* failure = std::get_if<Failure>(&submission)) {
      answer.failure = *failure;
      return answer;
    }
    const auto generation = std::get<std::shared_ptr<Generation>>(std::move(submission));
    while (auto event = generation->wait(kPatience)) {
      if (auto* delta = std::get_if<TextDelta>(&*event)) {
        answer.text += delta->text;
        for (auto& logprob : delta->logprobs) answer.logprobs.push_back(std::move(logprob));
      } else if (auto* finished = std::get_if<Finished>(&*event)) {
        answer.finished = *finished;
      } else if (auto* failure = std::get_if<Failure>(&*event)) {
        answer.failure = *failure;
      }
      if (is_final(*event)) break;
    }
    return answer;
  }

  static std::unique_ptr<engine::Engine> engine_;
};
std::unique_ptr<engine::Engine> EngineServiceTest::engine_;

TEST_F(EngineServiceTest, AnswersAndCounts) {
  const auto service = make();
  const auto answer = read(service->submit(ask("What is the capital of France?")));
  ASSERT_TRUE(answer.finished) << (answer.failure ? answer.failure->message : "no end");
  EXPECT_THAT(answer.text, HasSubstr("Paris"));
  EXPECT_GT(answer.finished->usage.prompt_tokens, 10);
  EXPECT_LE(answer.finished->usage.completion_tokens, 16);
}

TEST_F(EngineServiceTest, ACachedPrefixAndLogprobsChangeNoText) {
  const auto service = make();
  auto request = ask("Count from one to ten.", 24);
  const auto first = read(service->submit(request));
  request.logprobs = 2;
  const auto second = read(service->submit(request));
  EXPECT_EQ(first.text, second.text);
  ASSERT_FALSE(second.logprobs.empty());
  std::string text;
  for (const auto& drawn : second.logprobs) {
    text += drawn.token.bytes;
    ASSERT_EQ(drawn.top.size(), 2u);
    EXPECT_LE(drawn.token.logprob, 0);
    EXPECT_EQ(drawn.top[0].bytes, drawn.token.bytes);  // temperature 0 draws the likeliest
  }
  EXPECT_EQ(text, second.text);
}

TEST_F(EngineServiceTest, EndsBeforeAStopString) {
  const auto service = make();
  auto request = ask("Count from one to ten.", 24);
  const auto whole = read(service->submit(request)).text;
  ASSERT_GT(whole.size(), 8u);
  request.stop = {whole.substr(3, 4)};
  const auto stopped = read(service->submit(request));
  EXPECT_EQ(stopped.text, whole.substr(0, whole.find(request.stop[0])));
  EXPECT_EQ(stopped.finished->reason, FinishReason::kStop);
}

TEST_F(EngineServiceTest, RefusesWhatCannotWork) {
  const auto service = make();
  auto request = ask("hi");
  request.model = "gpt-5";
  EXPECT_EQ(read(service->submit(request)).failure->kind, FailureKind::kUnknownModel);

  request = ask("hi");
  request.prompt = std::vector<int32_t>(600, 1);
  auto failure = read(service->submit(request)).failure;
  EXPECT_EQ(failure->kind, FailureKind::kPromptTooLong);
  EXPECT_THAT(failure->message, HasSubstr("has 600 tokens, but the context holds 512"));

  request.prompt = std::vector<int32_t>{1 << 30};
  EXPECT_EQ(read(service->submit(request)).failure->kind, FailureKind::kInvalidRequest);
  request.prompt = std::string();
  EXPECT_EQ(read(service->submit(request)).failure->field, "prompt");
}

TEST_F(EngineServiceTest, CancelFreesTheEngineForTheNext) {
  const auto service = make();
  auto endless = ask("Tell me a very long story.", 400);
  endless.ignore_eos = true;
  auto running = std::get<std::shared_ptr<Generation>>(service->submit(endless));
  ASSERT_TRUE(running->wait(kPatience));
  auto waiting = std::get<std::shared_ptr<Generation>>(service->submit(endless));
  const auto refused = read(service->submit(endless));
  EXPECT_EQ(refused.failure->kind, FailureKind::kQueueFull);
  EXPECT_THAT(refused.failure->message, HasSubstr("1 requests are waiting and 1 may"));
  waiting.reset();
  running.reset();
  EXPECT_TRUE(read(service->submit(ask("hi"))).finished);
}

TEST_F(EngineServiceTest, EndingItEndsItsStreams) {
  auto service = make();
  auto endless = ask("Tell me a very long story.", 400);
  endless.ignore_eos = true;
  const auto running = std::get<std::shared_ptr<Generation>>(service->submit(endless));
  ASSERT_TRUE(running->wait(kPatience));
  const auto waiting = std::get<std::shared_ptr<Generation>>(service->submit(endless));
  service.reset();
  EXPECT_EQ(std::get<Failure>(*waiting->wait(kPatience)).kind, FailureKind::kShuttingDown);
}

}  // namespace
}  // namespace sluice::chat
