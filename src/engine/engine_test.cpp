#include "engine/engine.h"

#include <gmock/gmock.h>

#include <thread>

#include "engine/row.h"
#include "engine/test_model.h"

namespace sluice::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GenerateRequest request_of(std::vector<int32_t> prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  return request;
}

std::vector<int> prefill_cuts(int tokens, int chunk, Mode mode) {
  std::vector<int> cuts;
  for (int rest = tokens; rest > 0; rest -= cuts.back()) {
    cuts.push_back(next_prefill_cut(rest, chunk, mode));
  }
  return cuts;
}

TEST(PrefillCuts, FastModeCutsEverythingReferenceModeLeavesTheLastTokenAlone) {
  using Cuts = std::vector<int>;
  EXPECT_EQ(prefill_cuts(1, 512, Mode::kFast), (Cuts{1}));
  EXPECT_EQ(prefill_cuts(1025, 512, Mode::kFast), (Cuts{512, 512, 1}));
  EXPECT_EQ(prefill_cuts(1, 2048, Mode::kReference), (Cuts{1}));
  EXPECT_EQ(prefill_cuts(64, 2048, Mode::kReference), (Cuts{63, 1}));
  EXPECT_EQ(prefill_cuts(4097, 2048, Mode::kReference), (Cuts{2048, 2048, 1}));
  EXPECT_EQ(prefill_cuts(4098, 2048, Mode::kReference), (Cuts{2048, 2048, 1, 1}));
}

TEST(Engine, LoadingSaysWhatIsWrong) {
  auto message = [](auto change) {
    EngineOptions options;
    options.model = test_model_path();
    change(options);
    auto engine = Engine::load(options);
    return engine.ok() ? std::string("no error") : engine.error().message;
  };
  EXPECT_THAT(message([](auto& o) { o.model = "/nowhere/model.gguf"; }), HasSubstr("/nowhere"));
  EXPECT_THAT(message([](auto& o) { o.kernels = "quantum"; }), HasSubstr("quantum"));
  EXPECT_THAT(message([](auto& o) { o.isa = "mmx"; }), HasSubstr("mmx"));
  EXPECT_THAT(message([](auto& o) { o.dtype = "int3"; }), HasSubstr("int3"));
  EXPECT_THAT(message([](auto& o) { o.threads = -1; }), HasSubstr("-1"));
  EXPECT_THAT(message([](auto& o) { o.cache_tokens = -5; }), HasSubstr("-5"));
  EXPECT_THAT(message([](auto& o) {
                o.mode = Mode::kReference;
                o.kernels = "cpu";
              }),
              HasSubstr("reference mode"));
  EXPECT_THAT(message([](auto& o) {
                o.mode = Mode::kReference;
                o.check_kernels = true;
              }),
              HasSubstr("checking kernels"));
  EXPECT_THAT(message([](auto& o) { o.max_rows = -3; }), HasSubstr("-3 rows"));
  EXPECT_THAT(message([](auto& o) { o.queue_limit = -7; }), HasSubstr("-7 waiting"));
  EXPECT_THAT(message([](auto& o) {
                o.mode = Mode::kReference;
                o.max_rows = 2;
              }),
              HasSubstr("one row at a time"));
}

class EngineTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { engine_ = load_engine(); }
  static void TearDownTestSuite() { engine_.reset(); }

  static std::string message_of(const GenerateRequest& request) {
    auto result = engine_->generate(request);
    return result.ok() ? "no error" : result.error().message;
  }

  static std::unique_ptr<Engine> engine_;
};
std::unique_ptr<Engine> EngineTest::engine_;

TEST_F(EngineTest, InfoDescribesTheModel) {
  const auto& info = engine_->info();
  EXPECT_EQ(info.family, "llama");
  EXPECT_EQ(info.format, "gguf");
  EXPECT_EQ(info.vocab_size, 49152);
  EXPECT_EQ(info.num_layers, 30);
  EXPECT_EQ(info.cache_tokens, 1024);
  EXPECT_EQ(info.kernels, "cpu");
  EXPECT_THAT(info.eos_token_ids, testing::Contains(2));
  EXPECT_TRUE(info.chat_template.has_value());
  EXPECT_FALSE(info.tokenizer_json.empty());
}

TEST_F(EngineTest, BadRequestsAreNamed) {
  EXPECT_THAT(message_of(request_of({}, 4)), HasSubstr("prompt is empty"));
  EXPECT_THAT(message_of(request_of({1, 49152}, 4)), HasSubstr("49152"));
  EXPECT_THAT(message_of(request_of({1, -1}, 4)), HasSubstr("-1"));
  EXPECT_THAT(message_of(request_of({1}, 0)), HasSubstr("max_tokens"));
  const auto too_long = message_of(request_of(random_tokens(1000, 1), 25));
  EXPECT_THAT(too_long, HasSubstr("1000"));
  EXPECT_THAT(too_long, HasSubstr("1025"));
  EXPECT_THAT(too_long, HasSubstr("1024"));
  auto request = request_of({1}, 4);
  request.min_tokens = 5;
  EXPECT_THAT(message_of(request), HasSubstr("min_tokens"));
  request = request_of({1}, 4);
  request.prefill_chunk = 0;
  EXPECT_THAT(message_of(request), HasSubstr("prefill_chunk"));
  request = request_of({1}, 4);
  request.stop_token_ids = {70000};
  EXPECT_THAT(message_of(request), HasSubstr("stop_token_ids"));
  request = request_of({1}, 4);
  request.sampling.temperature = -1;
  EXPECT_THAT(message_of(request), HasSubstr("temperature"));
}

TEST_F(EngineTest, MaxTokensEndsWithLengthAndEveryTokenIsReported) {
  std::vector<int32_t> seen;
  auto request = request_of(random_tokens(5, 2), 6);
  request.sampling.logprobs = 2;
  auto result = engine_->generate(request, [&](const TokenEvent& event) {
    EXPECT_EQ(event.index, static_cast<int>(seen.size()));
    EXPECT_TRUE(event.logprob.has_value());
    EXPECT_EQ(event.top.size(), 2u);
    EXPECT_EQ(event.top[0].token, event.token);  // greedy: the most likely one
    EXPECT_FLOAT_EQ(event.top[0].logprob, *event.logprob);
    seen.push_back(event.token);
    return true;
  });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tokens, seen);
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(result->finish_reason, FinishReason::kLength);
  EXPECT_EQ(result->usage.prompt_tokens, 5);
  EXPECT_EQ(result->usage.completion_tokens, 6);
  EXPECT_GT(result->timings.prefill_seconds, 0);
}

TEST_F(EngineTest, WithoutMaxTokensTheCacheIsFilled) {
  auto request = request_of(random_tokens(1020, 3), 1);
  request.max_tokens.reset();
  auto result = engine_->generate(request);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->tokens.size(), 4u);
  EXPECT_EQ(result->finish_reason, FinishReason::kLength);
}

TEST_F(EngineTest, CallbackAndCancelFlagEndTheRequest) {
  auto request = request_of(random_tokens(5, 4), 50);
  auto stopped = engine_->generate(request, [](const TokenEvent& e) { return e.index < 2; });
  ASSERT_TRUE(stopped.ok());
  EXPECT_EQ(stopped->tokens.size(), 3u);
  EXPECT_EQ(stopped->finish_reason, FinishReason::kStop);
  EXPECT_FALSE(stopped->stop_token.has_value());

  std::atomic<bool> cancel{false};
  const auto at_second = [&](const TokenEvent& e) {
    cancel = e.index == 1;
    return true;
  };
  auto cancelled = engine_->generate(request, at_second, &cancel);
  ASSERT_TRUE(cancelled.ok());
  EXPECT_EQ(cancelled->tokens.size(), 2u);
  EXPECT_EQ(cancelled->finish_reason, FinishReason::kCancelled);
  auto before_start = engine_->generate(request, {}, &cancel);
  EXPECT_TRUE(before_start->tokens.empty());
}

TEST_F(EngineTest, StopTokensEndTheOutputButNotBeforeMinTokens) {
  auto request = request_of(random_tokens(8, 5), 8);
  const auto free = engine_->generate(request).value().tokens;
  request.stop_token_ids = {free[0]};
  const auto stopped = engine_->generate(request).value();
  EXPECT_EQ(stopped.tokens, (std::vector<int32_t>{free[0]}));
  EXPECT_EQ(stopped.stop_token, free[0]);
  EXPECT_EQ(stopped.finish_reason, FinishReason::kStop);
  request.min_tokens = 3;
  const auto longer = engine_->generate(request).value();
  ASSERT_GE(longer.tokens.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_NE(longer.tokens[i], free[0]);
}

TEST_F(EngineTest, EndTokensEndUnlessIgnored) {
  const auto eos = engine_->info().eos_token_ids.front();
  auto request = request_of(random_tokens(8, 6), 3);
  request.sampling.logit_bias[eos] = 100;
  EXPECT_EQ(engine_->generate(request).value().tokens, (std::vector<int32_t>{eos, eos, eos}));
  request.ignore_eos = false;
  const auto ended = engine_->generate(request).value();
  EXPECT_EQ(ended.tokens, (std::vector<int32_t>{eos}));
  EXPECT_EQ(ended.stop_token, eos);
  request.min_tokens = 2;
  const auto later = engine_->generate(request).value();
  ASSERT_EQ(later.tokens.size(), 3u);
  EXPECT_NE(later.tokens[0], eos);
  EXPECT_NE(later.tokens[1], eos);
  EXPECT_EQ(later.tokens[2], eos);
}

TEST_F(EngineTest, PromptsThatExtendAnEndedSequenceComputeTheRest) {
  auto prompt = random_tokens(100, 7);
  auto first = engine_->generate(request_of(prompt, 5)).value();
  EXPECT_EQ(first.usage.cached_tokens, 0);
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  prompt.push_back(33);
  auto other = request_of(prompt, 5);
  other.reuse_prefix = false;
  const auto cold = engine_->generate(other).value();
  EXPECT_EQ(cold.usage.cached_tokens, 0);
  const auto warm = engine_->generate(request_of(prompt, 5)).value();
  EXPECT_EQ(warm.usage.cached_tokens, 104);
  EXPECT_EQ(warm.tokens, cold.tokens);
  prompt[50] ^= 1;
  EXPECT_EQ(engine_->generate(request_of(prompt, 5))->usage.cached_tokens, 0);

  // Requests that need the whole cache take the pages of what is idle.
  ASSERT_TRUE(engine_->generate(request_of(random_tokens(1020, 8), 2)).ok());
  ASSERT_TRUE(engine_->generate(request_of(random_tokens(1000, 9), 20)).ok());
  prompt[50] ^= 1;
  EXPECT_EQ(engine_->generate(request_of(prompt, 5))->usage.cached_tokens, 0);
  EXPECT_EQ(engine_->load().preemptions, 0);
}

TEST_F(EngineTest, CallbacksThatThrowOrCallTheEngineAreErrors) {
  auto request = request_of(random_tokens(5, 9), 5);
  auto thrown = engine_->generate(
      request, [](const TokenEvent&) -> bool { throw std::runtime_error("client"); });
  ASSERT_FALSE(thrown.ok());
  EXPECT_THAT(thrown.error().message, HasSubstr("client"));
  auto nested = engine_->generate(request, [&](const TokenEvent&) {
    EXPECT_FALSE(engine_->generate(request).ok());
    return false;
  });
  EXPECT_TRUE(nested.ok());
}

TEST_F(EngineTest, SeveralThreadsMayAsk) {
  const auto request = request_of(random_tokens(20, 10), 4);
  const auto alone = engine_->generate(request).value().tokens;
  std::vector<std::thread> askers;
  std::vector<std::vector<int32_t>> answers(3);
  for (auto& answer : answers) {
    askers.emplace_back([&] { answer = engine_->generate(request).value().tokens; });
  }
  for (auto& asker : askers) asker.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, alone);
}

TEST(EngineRows, TheQueueIsBoundedAndCancellingFreesIt) {
  EngineOptions options;
  options.max_rows = 1;
  options.queue_limit = 1;
  auto engine = load_engine(options);
  const auto endless = request_of(random_tokens(5, 1), 900);
  auto running = submit(*engine, endless);
  running->wait_for_token();
  auto waiting = submit(*engine, endless);
  const auto refused = engine->submit(endless, std::make_shared<PendingRequest>());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("1 requests are waiting and 1 may"));
  EXPECT_EQ(engine->load().running, 1);
  EXPECT_EQ(engine->load().queued, 1);
  EXPECT_EQ(engine->load().queue_limit, 1);

  // One that waits ends before the running one does.
  waiting->cancel = true;
  const auto never_ran = waiting->result().value();
  EXPECT_EQ(never_ran.finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(never_ran.tokens.empty());
  auto next = submit(*engine, request_of(random_tokens(5, 2), 3));
  running->cancel = true;
  const auto cut = running->result().value();
  EXPECT_EQ(cut.finish_reason, FinishReason::kCancelled);
  EXPECT_LT(cut.tokens.size(), 900u);
  EXPECT_EQ(next->result().value().tokens.size(), 3u);
}

TEST(EngineRows, AFullCachePreemptsAndChangesNoToken) {
  EngineOptions options;
  options.cache_tokens = 256;  // four pages for three rows that want two to three each
  auto engine = load_engine(options);
  std::vector<GenerateRequest> requests;
  std::vector<std::vector<int32_t>> alone;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(request_of(random_tokens(40 + i, 20 + i), 100));
    requests.back().reuse_prefix = false;
    alone.push_back(engine->generate(requests.back()).value().tokens);
  }
  std::vector<std::shared_ptr<PendingRequest>> together;
  for (const auto& request : requests) together.push_back(submit(*engine, request));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(together[i]->result().value().tokens, alone[i]) << i;
  EXPECT_GT(engine->load().preemptions, 0);
}

TEST(EngineRows, AFaultEndsItsOwnRowOnly) {
  auto engine = load_engine();
  const auto request = request_of(random_tokens(30, 3), 12);
  const auto alone = engine->generate(request).value().tokens;
  auto good = submit(*engine, request);
  auto bad = std::make_shared<PendingRequest>();
  bad->hook = [](const TokenEvent& event) {
    if (event.index == 2) throw std::runtime_error("the client's fault");
  };
  engine->submit(request, bad).or_throw();
  const auto failed = bad->result();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("the client's fault"));
  EXPECT_EQ(good->result().value().tokens, alone);
}

TEST(EngineLifetime, EndingTheEngineEndsItsRequests) {
  auto engine = load_engine();
  auto running = submit(*engine, request_of(random_tokens(5, 1), 900));
  running->wait_for_token();
  engine.reset();
  const auto result = running->result();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, HasSubstr("shuts down"));
}

TEST(EngineCheck, CheckModeReportsWhatRanAndHowFarItIsFromTheReference) {
  EngineOptions options;
  options.check_kernels = true;
  auto engine = load_engine(options);
  ASSERT_TRUE(engine->generate(request_of(random_tokens(9, 11), 2)).ok());
  std::vector<std::string> ops;
  for (const auto& report : engine->kernel_report()) {
    ops.push_back(report.op);
    EXPECT_GT(report.kernel_runs, 0) << report.op;
    EXPECT_GT(report.checked_calls, 0) << report.op;
    EXPECT_LE(report.max_abs_error, 1e-3 * report.max_reference) << report.op;
  }
  EXPECT_THAT(ops, ElementsAre("linear", "embedding", "rms_norm", "rope", "swiglu", "attention"));
}

}  // namespace
}  // namespace sluice::engine
