// Tokens to events without an engine: a small tokenizer, and a parser that is a script.
#include "chat/answer_events.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "text/test_tokenizers.h"

namespace sluice::chat {
namespace {

// Capital letters are thoughts; a digit calls tool number digit; a dot is a marker without text.
class ScriptedParser : public text::AnswerParser {
 public:
  void push(std::string_view text, std::vector<text::AnswerPart>& parts) override {
    for (const char c : text) {
      reasoning_ = std::isupper(static_cast<unsigned char>(c)) != 0;
      if (std::isdigit(static_cast<unsigned char>(c))) {
        parts.push_back(text::ToolCallPart{c - '0', "call", "tool", "{}"});
      } else if (c != '.') {
        parts.push_back(text::TextPart{reasoning_, std::string(1, c)});
      }
    }
  }
  void finish(std::vector<text::AnswerPart>& parts) override {
    parts.push_back(text::TextPart{false, "$"});
  }
  bool in_reasoning() const override { return reasoning_; }

 private:
  bool reasoning_ = false;
};

struct Outcome {
  std::string reasoning, content;
  std::vector<ToolCallDelta> calls;
  std::vector<std::string> logprobs;  // bytes of the tokens, over all deltas
  std::optional<Finished> finished;
  std::optional<Failure> failure;
  int tokens_taken = 0;
};

class AnswerEventsTest : public testing::Test {
 protected:
  // Every byte of `answer` is a token.
  Outcome run(const std::string& answer,
              std::vector<std::string> stops = {},
              std::unique_ptr<text::AnswerParser> parser = std::make_unique<ScriptedParser>(),
              engine::FinishReason reason = engine::FinishReason::kStop) {
    EventChannel channel(1000);
    auto text = text::AnswerText::create(tokenizer_, {}, std::move(stops), 0);
    AnswerEvents events(tokenizer_, std::move(*text), std::move(parser), channel);
    Outcome outcome;
    engine::GenerateResult result;
    result.finish_reason = reason;
    for (const char c : answer) {
      engine::TokenEvent token;
      token.token = static_cast<unsigned char>(c);
      token.index = outcome.tokens_taken++;
      token.logprob = -1.0f;
      if (!events.on_token(token)) break;
    }
    result.usage.completion_tokens = outcome.tokens_taken;
    events.finish(result);
    while (const auto event = channel.poll()) take(*event, outcome);
    return outcome;
  }

  static void take(const ChatEvent& event, Outcome& outcome) {
    if (const auto* delta = std::get_if<TextDelta>(&event)) {
      (delta->channel == Channel::kReasoning ? outcome.reasoning : outcome.content) += delta->text;
      for (const auto& drawn : delta->logprobs) outcome.logprobs.push_back(drawn.token.bytes);
    } else if (const auto* call = std::get_if<ToolCallDelta>(&event)) {
      outcome.calls.push_back(*call);
    } else if (const auto* finished = std::get_if<Finished>(&event)) {
      outcome.finished = *finished;
    } else if (const auto* failure = std::get_if<Failure>(&event)) {
      outcome.failure = *failure;
    }
  }

  const text::Tokenizer tokenizer_ =
      text::Tokenizer::from_json(text::testing::byte_level_json().dump()).value();
};

TEST_F(AnswerEventsTest, PartsBecomeEvents) {
  const auto got = run("ABab0c1");
  EXPECT_EQ(got.reasoning, "AB");
  EXPECT_EQ(got.content, "abc$");
  ASSERT_EQ(got.calls.size(), 2u);
  EXPECT_EQ(got.calls[0].index, 0);
  EXPECT_EQ(got.calls[1].index, 1);
  EXPECT_EQ(got.calls[1].id, "call");
  EXPECT_EQ(got.calls[1].name, "tool");
  EXPECT_EQ(got.calls[1].arguments, "{}");
  ASSERT_TRUE(got.finished);
  EXPECT_EQ(got.finished->reason, FinishReason::kToolCalls);
  EXPECT_EQ(got.finished->usage.completion_tokens, 7);
  // A, B, and the token that ends the thoughts.
  EXPECT_EQ(got.finished->usage.reasoning_tokens, 3);
}

TEST_F(AnswerEventsTest, EveryTokenHasItsLogprobOnce) {
  const auto got = run("A..b0.");
  EXPECT_EQ(got.logprobs, (std::vector<std::string>{"A", ".", ".", "b", "0", "."}));
}

TEST_F(AnswerEventsTest, StopStringsActBeforeTheParser) {
  // "A0" would be a thought and a call, and "B" comes after the stop.
  const auto got = run("xA0B", {"A0"});
  EXPECT_EQ(got.content, "x$");
  EXPECT_EQ(got.reasoning, "");
  EXPECT_TRUE(got.calls.empty());
  EXPECT_EQ(got.tokens_taken, 3);
  EXPECT_EQ(got.finished->reason, FinishReason::kStop);
}

TEST_F(AnswerEventsTest, AFullContextIsSaidEvenAfterACall) {
  const auto got = run("a0", {}, std::make_unique<ScriptedParser>(), engine::FinishReason::kLength);
  EXPECT_EQ(got.finished->reason, FinishReason::kLength);
}

TEST_F(AnswerEventsTest, ThoughtsThroughTheRealParser) {
  const auto got = run("Hm.\n</think>\n\nhello", {}, std::make_unique<text::ThinkParser>(true));
  EXPECT_EQ(got.reasoning, "Hm.");
  EXPECT_EQ(got.content, "hello");
  // "Hm.\n" and the marker, whose last byte ends the thoughts.
  EXPECT_EQ(got.finished->usage.reasoning_tokens, 12);
  EXPECT_EQ(got.finished->reason, FinishReason::kStop);
}

TEST_F(AnswerEventsTest, AnErrorOfTheEngineIsAFailure) {
  EventChannel channel(10);
  auto text = text::AnswerText::create(tokenizer_, {}, {}, 0);
  AnswerEvents events(tokenizer_, std::move(*text), std::make_unique<text::PlainParser>(), channel);
  events.finish(make_error(ErrorCode::kInternal, "the pass failed"));
  const auto event = channel.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(std::get<Failure>(*event).kind, FailureKind::kInternal);
  EXPECT_EQ(std::get<Failure>(*event).message, "the pass failed");
}

}  // namespace
}  // namespace sluice::chat
