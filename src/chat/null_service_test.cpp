#include "chat/null_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace sluice::chat {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

ChatRequest request_for(std::string prompt) {
  ChatRequest request;
  request.prompt = std::move(prompt);
  return request;
}

std::shared_ptr<Generation> accepted(Submission submission) {
  return std::get<std::shared_ptr<Generation>>(std::move(submission));
}

struct Answer {
  std::string text;
  std::optional<Finished> finished;
  std::optional<Failure> failure;
  int progress = 0;
  std::vector<DrawnLogprob> logprobs;
};

Answer read_all(Generation& generation) {
  Answer answer;
  while (auto event = generation.wait(milliseconds(10000))) {
    if (auto* delta = std::get_if<TextDelta>(&*event)) {
      answer.text += delta->text;
      for (auto& logprob : delta->logprobs) answer.logprobs.push_back(logprob);
    } else if (std::holds_alternative<PrefillProgress>(*event)) {
      ++answer.progress;
    } else if (auto* finished = std::get_if<Finished>(&*event)) {
      answer.finished = *finished;
    } else if (auto* failure = std::get_if<Failure>(&*event)) {
      answer.failure = *failure;
    }
    if (is_final(*event)) break;
  }
  return answer;
}

void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  ASSERT_TRUE(condition());
}

TEST(NullTokenize, CutsAtCharacterBorders) {
  EXPECT_THAT(null_tokenize("abcdefghi"), ElementsAre("abcd", "efgh", "i"));
  EXPECT_THAT(null_tokenize("aéé€"), ElementsAre("aé", "é", "€"));
  EXPECT_THAT(null_tokenize("\x80\x80\x80\x80\x80"), ElementsAre("\x80\x80\x80\x80", "\x80"));
  EXPECT_THAT(null_tokenize(""), ElementsAre());
}

TEST(NullService, EchoesTheLastMessage) {
  NullService service({});
  ChatRequest request;
  Messages messages;
  messages.messages = Json::parse(R"([{"role": "user", "content": "no"},
                                      {"role": "user", "content": "hello world"}])");
  request.prompt = messages;
  const auto answer = read_all(*accepted(service.submit(request)));
  EXPECT_EQ(answer.text, "hello world");
  EXPECT_EQ(answer.finished->reason, FinishReason::kStop);
  EXPECT_EQ(answer.finished->usage.prompt_tokens, 3);
  EXPECT_EQ(answer.finished->usage.completion_tokens, 3);
}

TEST(NullService, HonoursMaxTokensIgnoreEosStopAndLogprobs) {
  NullService service({});
  auto request = request_for("abcdefgh");
  request.max_tokens = 5;
  request.ignore_eos = true;
  request.logprobs = 2;
  auto answer = read_all(*accepted(service.submit(request)));
  EXPECT_EQ(answer.text, "abcdefghabcdefghabcd");
  EXPECT_EQ(answer.finished->reason, FinishReason::kLength);
  ASSERT_EQ(answer.logprobs.size(), 5u);
  EXPECT_EQ(answer.logprobs[1].token.bytes, "efgh");
  EXPECT_DOUBLE_EQ(answer.logprobs[1].token.logprob, -0.125);
  EXPECT_EQ(answer.logprobs[1].top.size(), 2u);

  request.stop = {"zz", "ha"};
  answer = read_all(*accepted(service.submit(request)));
  EXPECT_EQ(answer.text, "abcdefg");
  EXPECT_EQ(answer.finished->reason, FinishReason::kStop);
  request.min_tokens = 3;
  answer = read_all(*accepted(service.submit(request)));
  EXPECT_EQ(answer.text, "abcdefghabcdefg");
}

TEST(NullService, ReportsPrefillProgress) {
  NullServiceOptions options;
  options.prefill_tokens_per_step = 2;
  options.tokens_per_second = 200;
  NullService service(options);
  EXPECT_GE(read_all(*accepted(service.submit(request_for(std::string(40, 'x'))))).progress, 1);
}

TEST(NullService, RefusesUnknownModelAndLongPromptsWithBothCounts) {
  NullServiceOptions options;
  options.model.context_length = 4;
  NullService service(options);
  auto request = request_for("0123456789abcdef");
  auto failure = std::get<Failure>(service.submit(request));
  EXPECT_EQ(failure.kind, FailureKind::kPromptTooLong);
  EXPECT_EQ(failure.field, "prompt");
  EXPECT_THAT(failure.message, HasSubstr("has 4 tokens, but the context holds 4"));
  request.model = "gpt-x";
  failure = std::get<Failure>(service.submit(request));
  EXPECT_EQ(failure.kind, FailureKind::kUnknownModel);
  EXPECT_THAT(failure.message, HasSubstr("'gpt-x'"));
}

TEST(NullService, RefusesWhenTheQueueIsFull) {
  NullServiceOptions options;
  options.max_running = 1;
  options.queue_limit = 1;
  options.tokens_per_second = 1;
  NullService service(options);
  auto request = request_for("x");
  request.ignore_eos = true;
  const auto first = accepted(service.submit(request));
  const auto second = accepted(service.submit(request));
  const auto failure = std::get<Failure>(service.submit(request));
  EXPECT_EQ(failure.kind, FailureKind::kQueueFull);
  EXPECT_THAT(failure.message, HasSubstr("1 may"));
}

TEST(NullService, DroppingTheGenerationFreesItsRow) {
  NullServiceOptions options;
  options.tokens_per_second = 500;
  NullService service(options);
  auto request = request_for("x");
  request.ignore_eos = true;
  auto generation = accepted(service.submit(request));
  wait_until([&] { return service.health().running == 1; });
  generation.reset();
  wait_until([&] { return service.health().running == 0; });
  EXPECT_EQ(service.counts().cancelled, 1);
}

TEST(NullService, AnUnreadRowIsCancelledAndDoesNotStopOthers) {
  NullServiceOptions options;
  options.channel_capacity = 8;
  options.model.context_length = 1 << 14;
  options.tokens_per_second = 2000;  // with no pause, no reader could keep up with eight events
  NullService service(options);
  auto request = request_for("x");
  request.ignore_eos = true;
  const auto slow = accepted(service.submit(request));
  auto brisk_request = request_for(std::string(400, 'y'));
  const auto brisk = read_all(*accepted(service.submit(brisk_request)));
  wait_until([&] { return service.counts().cancelled >= 1; });
  const auto event = slow->poll();
  EXPECT_EQ(std::get<Failure>(*event).kind, FailureKind::kSlowConsumer);
  EXPECT_FALSE(brisk.failure) << brisk.failure->message;
}

TEST(NullService, BreakingDownFailsEverythingAndShowsInHealth) {
  NullServiceOptions options;
  options.tokens_per_second = 100;
  NullService service(options);
  auto request = request_for("x");
  request.ignore_eos = true;
  const auto generation = accepted(service.submit(request));
  service.break_down("the step failed");
  EXPECT_EQ(read_all(*generation).failure->kind, FailureKind::kInternal);
  EXPECT_FALSE(service.health().ok);
  EXPECT_EQ(std::get<Failure>(service.submit(request)).message, "the step failed");
}

TEST(NullService, EndingTheServiceEndsItsStreams) {
  NullServiceOptions options;
  options.tokens_per_second = 10;
  auto service = std::make_unique<NullService>(options);
  auto request = request_for("x");
  request.ignore_eos = true;
  const auto generation = accepted(service->submit(request));
  service.reset();
  EXPECT_EQ(read_all(*generation).failure->kind, FailureKind::kShuttingDown);
}

}  // namespace
}  // namespace sluice::chat
