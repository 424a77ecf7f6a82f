// Events in, bytes out, compared as bytes.
#include "server/openai/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/result.h"

namespace sluice::server {
namespace {

using chat::Channel;
using chat::ChatEvent;
using chat::DrawnLogprob;
using chat::Failure;
using chat::FailureKind;
using chat::Finished;
using chat::FinishReason;
using chat::Json;
using chat::PrefillProgress;
using chat::TextDelta;
using chat::ToolCallDelta;

ResponseHead head(Api api = Api::kChat) {
  ResponseHead head;
  head.api = api;
  head.id = "id-1";
  head.created = 7;
  head.model = "m";
  return head;
}

TextDelta text(std::string s, Channel channel = Channel::kContent) {
  return {channel, std::move(s), {}};
}

std::string stream_of(ResponseHead head, const std::vector<ChatEvent>& events) {
  StreamEncoder encoder(std::move(head));
  std::string out;
  for (const auto& event : events) encoder.on_event(0, event, out);
  EXPECT_TRUE(encoder.done());
  return out;
}

std::string body_of(ResponseHead head, const std::vector<ChatEvent>& events) {
  CollectEncoder encoder(std::move(head));
  for (const auto& event : events) encoder.on_event(0, event);
  EXPECT_TRUE(encoder.done());
  return encoder.body();
}

const std::string kChunk =
    R"(data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m",)";

TEST(StreamEncoder, HasTheRoleInTheFirstChunkAndTheReasonInTheLast) {
  EXPECT_EQ(
      stream_of(head(), {text("He"), text("llo"), Finished{FinishReason::kStop, {3, 0, 2, 0}}}),
      kChunk +
          R"("choices":[{"index":0,"delta":{"role":"assistant","content":"He"},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          kChunk +
          R"("choices":[{"index":0,"delta":{"content":"llo"},"logprobs":null,"finish_reason":null}]})"
          "\n\n" +
          kChunk + R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]})" +
          "\n\ndata: [DONE]\n\n");
}

TEST(StreamEncoder, AnEmptyAnswerStillHasItsRole) {
  EXPECT_EQ(
      stream_of(head(), {Finished{FinishReason::kLength, {}}}),
      kChunk +
          R"("choices":[{"index":0,"delta":{"role":"assistant"},"logprobs":null,"finish_reason":"length"}]})"
          "\n\ndata: [DONE]\n\n");
}

TEST(StreamEncoder, PutsUsageIntoAChunkOfItsOwn) {
  auto with_usage = head();
  with_usage.include_usage = true;
  with_usage.fingerprint = "fp";
  const std::string chunk =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m","system_fingerprint":"fp",)";
  EXPECT_EQ(
      stream_of(with_usage, {text("a"), Finished{FinishReason::kStop, {10, 4, 5, 2}}}),
      chunk +
          R"("choices":[{"index":0,"delta":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":null}],"usage":null})"
          "\n\n" +
          chunk +
          R"("choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null})"
          "\n\n" +
          chunk +
          R"("choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}})"
          "\n\ndata: [DONE]\n\n");
}

TEST(StreamEncoder, StreamsReasoningAndToolCalls) {
  const auto out = stream_of(head(),
                             {text("hm", Channel::kReasoning),
                              ToolCallDelta{0, "call_1", "f", "{\"a"},
                              ToolCallDelta{0, "", "", "\":1}"},
                              Finished{FinishReason::kToolCalls, {}}});
  EXPECT_THAT(
      out,
      testing::AllOf(
          testing::HasSubstr(
              R"("delta":{"role":"assistant","reasoning_content":"hm","reasoning":"hm"})"),
          testing::HasSubstr(
              R"("delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a"}}]})"),
          testing::HasSubstr(
              R"("delta":{"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]})"),
          testing::HasSubstr(R"("finish_reason":"tool_calls")")));
}

TEST(StreamEncoder, ProgressAndSilenceAreComments) {
  StreamEncoder encoder(head());
  std::string out;
  encoder.on_event(0, PrefillProgress{512, 2048}, out);
  StreamEncoder::keepalive(out);
  EXPECT_EQ(out, ": keepalive 512/2048\n\n: keepalive\n\n");
  EXPECT_FALSE(encoder.done());
}

TEST(StreamEncoder, AnErrorEndsTheStreamWithoutDone) {
  StreamEncoder encoder(head());
  std::string out;
  encoder.on_event(0, Failure{FailureKind::kInternal, "", "step failed"}, out);
  EXPECT_EQ(out,
            R"(data: {"error":{"message":"step failed","type":"server_error","param":null,)"
            R"("code":"internal_error"}})"
            "\n\n");
  EXPECT_TRUE(encoder.done());
  out.clear();
  encoder.on_event(0, text("late"), out);
  EXPECT_EQ(out, "");
}

TEST(StreamEncoder, NeverSendsAnEmptyContentAndKeepsItsLogprobs) {
  auto with_logprobs = head();
  with_logprobs.logprobs = true;
  StreamEncoder encoder(with_logprobs);
  std::string out;
  encoder.on_event(0, TextDelta{Channel::kContent, "", {{{"\xC3", -0.5}, {}}}}, out);
  EXPECT_EQ(out, "");
  encoder.on_event(0, TextDelta{Channel::kContent, "\xC3\xA9", {{{"\xA9", -0.25}, {}}}}, out);
  EXPECT_EQ(
      out,
      kChunk +
          R"("choices":[{"index":0,"delta":{"role":"assistant","content":"é"},"logprobs":{"content":[)"
          R"({"token":"�","logprob":-0.5,"bytes":[195],"top_logprobs":[]},)"
          R"({"token":"�","logprob":-0.25,"bytes":[169],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]})"
          "\n\n");
  // What never got a text comes with the end.
  out.clear();
  encoder.on_event(0, TextDelta{Channel::kContent, "", {{{"</s>", -1}, {}}}}, out);
  encoder.on_event(0, Finished{}, out);
  EXPECT_THAT(out, testing::HasSubstr(R"("delta":{},"logprobs":{"content":[{"token":"</s>")"));
}

TEST(StreamEncoder, CountsTheChoicesOfSeveralPrompts) {
  auto two = head(Api::kCompletion);
  two.num_choices = 2;
  two.include_usage = true;
  StreamEncoder encoder(two);
  std::string out;
  encoder.on_event(1, text("b"), out);
  encoder.on_event(1, Finished{FinishReason::kStop, {2, 0, 1, 0}}, out);
  EXPECT_FALSE(encoder.done());
  encoder.on_event(0, Finished{FinishReason::kStop, {3, 0, 0, 0}}, out);
  EXPECT_TRUE(encoder.done());
  EXPECT_THAT(out, testing::HasSubstr(R"("choices":[{"text":"b","index":1,)"));
  EXPECT_THAT(out, testing::HasSubstr(R"("usage":{"prompt_tokens":5,"completion_tokens":1,)"));
}

TEST(StreamEncoder, SurvivesTextThatIsNotUtf8) {
  EXPECT_THAT(stream_of(head(), {text("a\xFF"), Finished{}}),
              testing::HasSubstr("\"a\xEF\xBF\xBD\""));
}

TEST(CollectEncoder, IsTheFoldOfTheStream) {
  const std::vector<ChatEvent> events{text("Let me ", Channel::kReasoning),
                                      text("see", Channel::kReasoning),
                                      PrefillProgress{1, 2},
                                      text("He"),
                                      text("llo"),
                                      ToolCallDelta{0, "c0", "f", "{}"},
                                      ToolCallDelta{1, "c1", "g", "{\"a\""},
                                      ToolCallDelta{1, "", "", ":1}"},
                                      Finished{FinishReason::kToolCalls, {3, 1, 4, 2}}};
  EXPECT_EQ(
      body_of(head(), events),
      R"({"id":"id-1","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello",)"
      R"("reasoning_content":"Let me see","reasoning":"Let me see",)"
      R"("tool_calls":[{"id":"c0","type":"function","function":{"name":"f","arguments":"{}"}},)"
      R"({"id":"c1","type":"function","function":{"name":"g","arguments":"{\"a\":1}"}}]},)"
      R"("logprobs":null,"finish_reason":"tool_calls"}],)"
      R"("usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}})");
}

TEST(CollectEncoder, KeepsTheFirstFailure) {
  CollectEncoder encoder(head());
  encoder.on_event(0, text("a"));
  encoder.on_event(0, Failure{FailureKind::kSlowConsumer, "", "slow"});
  EXPECT_TRUE(encoder.done());
  encoder.on_event(0, Failure{FailureKind::kInternal, "", "second"});
  EXPECT_EQ(encoder.failure()->message, "slow");
}

TEST(CollectEncoder, CompletionLogprobsHaveOffsetsInCharacters) {
  auto with_logprobs = head(Api::kCompletion);
  with_logprobs.logprobs = true;
  // In steps: g++ 12 takes the braces of it all for a value that is destroyed before it is made.
  DrawnLogprob first;
  first.token = {"né", -0.5};
  first.top = {{"né", -0.5}, {"no", -1}, {"no", -2}};
  const DrawnLogprob second{{"x", -std::numeric_limits<double>::infinity()}, {}};
  const std::vector<ChatEvent> events{TextDelta{Channel::kContent, "né", {first}},
                                      TextDelta{Channel::kContent, "x", {second}},
                                      Finished{FinishReason::kLength, {}}};
  const auto choice = Json::parse(body_of(with_logprobs, events)).at("choices").at(0);
  EXPECT_EQ(
      choice.dump(),
      R"({"index":0,"text":"néx","logprobs":{"tokens":["né","x"],"token_logprobs":[-0.5,-9999.0],)"
      R"("top_logprobs":[{"né":-0.5,"no":-1.0},{}],"text_offset":[0,2]},"finish_reason":"length"})");
}

TEST(CollectEncoder, LeavesLogprobsOutThatNobodyAskedFor) {
  const std::vector<ChatEvent> events{TextDelta{Channel::kContent, "a", {{{"a", -1}, {}}}},
                                      Finished{}};
  EXPECT_THAT(body_of(head(), events), testing::HasSubstr(R"("logprobs":null)"));
}

TEST(ApiErrorOfFailure, HasTheStatusOfItsKind) {
  const std::pair<FailureKind, int> cases[] = {{FailureKind::kInvalidRequest, 400},
                                               {FailureKind::kUnknownModel, 404},
                                               {FailureKind::kPromptTooLong, 400},
                                               {FailureKind::kQueueFull, 503},
                                               {FailureKind::kShuttingDown, 503},
                                               {FailureKind::kSlowConsumer, 500},
                                               {FailureKind::kCancelled, 500},
                                               {FailureKind::kInternal, 500}};
  for (const auto& [kind, status] : cases) {
    const auto error = api_error({kind, "f", "m"});
    EXPECT_EQ(error.status, status);
    EXPECT_EQ(error.type, status >= 500 ? "server_error" : "invalid_request_error");
    EXPECT_TRUE(error.code);
  }
  EXPECT_EQ(api_error({FailureKind::kQueueFull, "", "m"}).retry_after, 1);
}

}  // namespace
}  // namespace sluice::server
