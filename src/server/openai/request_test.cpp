#include "server/openai/request.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace sluice::server {
namespace {

using chat::ChatRequest;
using chat::Messages;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// A chat body with one message and `more` members.
std::string chat_body(const std::string& more = "") {
  return R"({"messages": [{"role": "user", "content": "hi"}])" + (more.empty() ? "" : ", " + more) +
         "}";
}

std::string completion_body(const std::string& more) {
  return R"({"prompt": "hi", )" + more + "}";
}

ApiRequest accepted(std::variant<ApiRequest, ApiError> result) {
  if (auto* error = std::get_if<ApiError>(&result)) {
    ADD_FAILURE() << error->message;
    return {};
  }
  return std::get<ApiRequest>(std::move(result));
}

ChatRequest chat_request(const std::string& more) {
  auto request = accepted(parse_chat(chat_body(more)));
  return request.requests.empty() ? ChatRequest{} : request.requests.front();
}

Messages messages_of(const std::string& body) {
  auto request = accepted(parse_chat(body));
  return request.requests.empty() ? Messages{}
                                  : std::get<Messages>(request.requests.front().prompt);
}

TEST(ParseChat, LeavesEverythingToTheDefaults) {
  const auto request = accepted(parse_chat(chat_body()));
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.include_usage);
  ASSERT_EQ(request.requests.size(), 1u);
  const auto& chat = request.requests.front();
  EXPECT_EQ(chat.model, "");
  EXPECT_FALSE(chat.max_tokens);
  EXPECT_FALSE(chat.logprobs);
  EXPECT_FALSE(chat.sampling.temperature || chat.sampling.seed || chat.sampling.top_k);
  EXPECT_EQ(std::get<Messages>(chat.prompt).messages.dump(), R"([{"role":"user","content":"hi"}])");
}

TEST(ParseChat, ReadsEverySetting) {
  const auto request = accepted(parse_chat(chat_body(R"(
      "model": "m", "stream": true, "stream_options": {"include_usage": true},
      "temperature": 0.5, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "repetition_penalty": 1.1,
      "presence_penalty": -2, "frequency_penalty": 2, "penalty_window": 64, "seed": -1,
      "logit_bias": {"7": -100, "8": 1.5}, "logprobs": true, "top_logprobs": 5,
      "max_completion_tokens": 9, "min_tokens": 2, "ignore_eos": true, "stop": ["a", "b"])")));
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  const auto& chat = request.requests.at(0);
  EXPECT_EQ(chat.model, "m");
  EXPECT_EQ(chat.sampling.temperature, 0.5);
  EXPECT_EQ(chat.sampling.top_p, 0.9);
  EXPECT_EQ(chat.sampling.top_k, 40);
  EXPECT_EQ(chat.sampling.min_p, 0.05);
  EXPECT_EQ(chat.sampling.repetition_penalty, 1.1);
  EXPECT_EQ(chat.sampling.presence_penalty, -2);
  EXPECT_EQ(chat.sampling.frequency_penalty, 2);
  EXPECT_EQ(chat.sampling.penalty_window, 64);
  EXPECT_EQ(chat.sampling.seed, UINT64_MAX);
  EXPECT_THAT(chat.sampling.logit_bias, ElementsAre(Pair(7, -100), Pair(8, 1.5)));
  EXPECT_EQ(chat.logprobs, 5);
  EXPECT_EQ(chat.max_tokens, 9);
  EXPECT_EQ(chat.min_tokens, 2);
  EXPECT_TRUE(chat.ignore_eos);
  EXPECT_THAT(chat.stop, ElementsAre("a", "b"));
}

TEST(ParseChat, TakesNullAsAbsentAndIgnoresWhatItDoesNotKnow) {
  const auto chat = chat_request(
      R"("temperature": null, "max_tokens": null, "stop": null, "n": null, "tools": null,
         "response_format": null, "logit_bias": null, "user": "u", "metadata": {"a": "b"},
         "store": false, "service_tier": "auto", "something_new": [1])");
  EXPECT_FALSE(chat.sampling.temperature);
  EXPECT_FALSE(chat.max_tokens);
}

TEST(ParseChat, AcceptsNeutralValuesOfWhatItDoesNotSupport) {
  chat_request(R"("n": 1, "response_format": {"type": "text"}, "tool_choice": "auto",
                  "parallel_tool_calls": true, "functions": [], "modalities": ["text"],
                  "add_generation_prompt": true, "typical_p": 1.0, "top_k": -1)");
}

TEST(ParseChat, BringsMessagesToOneForm) {
  const auto messages = messages_of(R"({"messages": [
    {"role": "developer", "content": "be brief", "name": "boss", "x": 1},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"z\": 1, \"a\": 2}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "42"}]})");
  EXPECT_EQ(messages.messages.dump(),
            R"([{"role":"system","content":"be brief","name":"boss"},)"
            R"({"role":"user","content":"ab"},)"
            R"({"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
            R"("function":{"name":"f","arguments":"{\"z\": 1, \"a\": 2}"}}]},)"
            R"({"role":"tool","content":"42","tool_call_id":"c1"}])");
}

TEST(ParseChat, HandsToolsOnInTheClientsOrder) {
  const std::string tools =
      R"([{"type":"function","function":{"name":"f","parameters":{"z":{},"a":{}}}}])";
  EXPECT_EQ(messages_of(chat_body("\"tools\": " + tools)).tools.dump(), tools);
  EXPECT_TRUE(messages_of(chat_body(R"("tool_choice": "none", "tools": )" + tools)).tools.empty());
}

TEST(ParseChat, HandsTemplateSettingsOn) {
  const auto messages = messages_of(chat_body(
      R"("chat_template_kwargs": {"enable_thinking": false}, "reasoning_effort": "low")"));
  EXPECT_EQ(messages.template_kwargs.dump(),
            R"({"enable_thinking":false,"reasoning_effort":"low"})");
}

// A raw prompt as text: the string itself, or "ids:1,2".
std::string shown(const chat::Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return fmt::format("ids:{}", fmt::join(std::get<std::vector<int32_t>>(prompt), ","));
}

TEST(ParseCompletion, TakesEveryFormOfPrompt) {
  const auto prompts = [](const std::string& prompt) {
    std::vector<std::string> out;
    for (const auto& request :
         accepted(parse_completion("{\"prompt\": " + prompt + "}")).requests) {
      EXPECT_EQ(request.prompt_index, static_cast<int>(out.size()));
      EXPECT_EQ(request.max_tokens, kCompletionTokens);
      out.push_back(shown(request.prompt));
    }
    return out;
  };
  EXPECT_THAT(prompts(R"("a")"), ElementsAre("a"));
  EXPECT_THAT(prompts(R"(["a", ""])"), ElementsAre("a", ""));
  EXPECT_THAT(prompts("[1, 2]"), ElementsAre("ids:1,2"));
  EXPECT_THAT(prompts(R"([[1], "b"])"), ElementsAre("ids:1", "b"));
}

TEST(ParseCompletion, ReadsLogprobsAsANumber) {
  const auto request =
      accepted(parse_completion(completion_body("\"logprobs\": 3, \"max_tokens\": 2")));
  EXPECT_EQ(request.requests.at(0).logprobs, 3);
  EXPECT_EQ(request.requests.at(0).max_tokens, 2);
}

// ---- refusals

struct Refusal {
  std::string body;
  std::string param;
  std::string message;  // a part of it
  bool chat = true;
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.body;
}

Refusal with(const std::string& more, std::string param, std::string message) {
  return {chat_body(more), std::move(param), std::move(message)};
}
Refusal messages(const std::string& list, std::string param, std::string message) {
  return {"{\"messages\": " + list + "}", std::move(param), std::move(message)};
}
Refusal completion(const std::string& body, std::string param, std::string message) {
  return {body, std::move(param), std::move(message), false};
}

class RefusedRequest : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedRequest, NamesFieldAndReason) {
  const auto& [body, param, message, chat] = GetParam();
  auto result = chat ? parse_chat(body) : parse_completion(body);
  const auto* error = std::get_if<ApiError>(&result);
  ASSERT_NE(error, nullptr) << "accepted: " << body;
  EXPECT_EQ(error->status, 400);
  EXPECT_EQ(error->type, "invalid_request_error");
  EXPECT_EQ(error->param.value_or("none"), param);
  EXPECT_THAT(error->message, HasSubstr(message));
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    RefusedRequest,
    testing::Values(
        with(R"("model": 5)", "model", "must be a string, not 5 (number)"),
        with(R"("stream": "yes")", "stream", "must be true or false, not \"yes\" (string)"),
        with(R"("stream": 1)", "stream", "must be true or false"),
        with(R"("stream_options": {})", "stream_options", "needs 'stream'"),
        with(R"("stream": true, "stream_options": [])", "stream_options", "must be an object"),
        with(R"("stream": true, "stream_options": {"include_usage": 1})",
             "stream_options.include_usage",
             "true or false"),
        with(R"("temperature": "0.5")", "temperature", "a number in [0, 100]"),
        with(R"("temperature": -0.1)", "temperature", "not -0.1"),
        with(R"("temperature": true)", "temperature", "not true (boolean)"),
        with(R"("top_p": 0)", "top_p", "a number in (0, 1]"),
        with(R"("top_p": 1.01)", "top_p", "(0, 1]"),
        with(R"("top_k": 1.5)", "top_k", "an integer >= -1"),
        with(R"("top_k": -2)", "top_k", "not -2"),
        with(R"("min_p": 2)", "min_p", "[0, 1]"),
        with(R"("repetition_penalty": 0)", "repetition_penalty", "a number > 0"),
        with(R"("presence_penalty": 2.5)", "presence_penalty", "[-2, 2]"),
        with(R"("frequency_penalty": [])", "frequency_penalty", "not an array"),
        with(R"("seed": 1.5)", "seed", "an integer"),
        with(R"("seed": 99999999999999999999)", "seed", "an integer"),
        with(R"("logit_bias": [1])", "logit_bias", "must be an object"),
        with(R"("logit_bias": {"a": 1})", "logit_bias", "the key \"a\""),
        with(R"("logit_bias": {"-1": 1})", "logit_bias", "the key \"-1\""),
        with(R"("logit_bias": {"1 ": 1})", "logit_bias", "keys must be token ids"),
        with(R"("logit_bias": {"9999999999": 1})", "logit_bias", "keys must be token ids"),
        with(R"("logit_bias": {"1": 101})", "logit_bias", "[-100, 100]"),
        with(R"("logit_bias": {"1": "x"})", "logit_bias", "not \"x\""),
        with(R"("max_tokens": -1)", "max_tokens", "an integer >= 1, not -1"),
        with(R"("max_tokens": 0)", "max_tokens", ">= 1"),
        with(R"("max_tokens": 3.0)", "max_tokens", "an integer"),
        with(R"("max_tokens": 99999999999)", "max_tokens", "an integer"),
        with(R"("max_tokens": 18446744073709551615)", "max_tokens", "an integer"),
        with(R"("max_tokens": 5, "max_completion_tokens": 6)", "max_completion_tokens", "send one"),
        with(R"("max_tokens": 5, "min_tokens": 6)", "min_tokens", "more than the 5 tokens"),
        with(R"("min_tokens": -1)", "min_tokens", ">= 0"),
        with(R"("ignore_eos": 0)", "ignore_eos", "true or false"),
        with(R"("logprobs": 3)", "logprobs", "true or false"),
        with(R"("top_logprobs": 3)", "top_logprobs", "needs 'logprobs'"),
        with(R"("logprobs": true, "top_logprobs": 21)", "top_logprobs", "[0, 20]"),
        with(R"("stop": "")", "stop", "not empty"),
        with(R"("stop": [""])", "stop[0]", "not empty"),
        with(R"("stop": ["a", 5])", "stop[1]", "not 5"),
        with(R"("stop": {})", "stop", "not an object"),
        with(
            R"("stop": ["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
            "stop",
            "17 strings; at most 16")));

INSTANTIATE_TEST_SUITE_P(
    Unsupported,
    RefusedRequest,
    testing::Values(
        with(R"("n": 2)", "n", "several choices are not supported yet"),
        with(R"("n": 0)", "n", "'n' is 0"),
        with(R"("response_format": {"type": "json_object"})",
             "response_format.type",
             "only 'text'"),
        with(R"("response_format": {})", "response_format.type", "missing"),
        with(R"("response_format": "text")", "response_format", "must be an object"),
        with(R"("tool_choice": "required")", "tool_choice", "not supported yet"),
        with(R"("tool_choice": {"type": "function"})", "tool_choice", "not supported yet"),
        with(R"("tool_choice": "some")", "tool_choice", "must be \"auto\" or \"none\""),
        with(R"("functions": [{}])", "functions", "use 'tools'"),
        with(R"("enable_thinking": false)", "enable_thinking", "chat_template_kwargs"),
        with(R"("guided_json": {})", "guided_json", "not supported yet"),
        with(R"("xtc_probability": 0.5)", "xtc_probability", "not supported"),
        with(R"("modalities": ["text", "audio"])", "modalities", "only text"),
        with(R"("tools": [{"type": "web_search"}])", "tools[0].type", "only 'function'"),
        with(R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}])",
             "tools[0].function.strict",
             "not supported yet"),
        with(
            R"("parallel_tool_calls": false, "tools": [{"type": "function", "function": {"name": "f"}}])",
            "parallel_tool_calls",
            "not supported yet"),
        completion(R"({"prompt": "a", "echo": true})", "echo", "put the prompt in front"),
        completion(R"({"prompt": "a", "best_of": 2})", "best_of", "not supported"),
        completion(R"({"prompt": "a", "suffix": "b"})", "suffix", "not supported")));

INSTANTIATE_TEST_SUITE_P(
    Conversation,
    RefusedRequest,
    testing::Values(
        Refusal{"{}", "messages", "is missing"},
        Refusal{R"({"messages": null})", "messages", "is missing"},
        messages("[]", "messages", "at least one"),
        messages("\"hi\"", "messages", "must be an array, not \"hi\""),
        messages("[5]", "messages[0]", "must be a message"),
        messages(R"([{"content": "a"}])", "messages[0].role", "missing"),
        messages(R"([{"role": "king", "content": "a"}])", "messages[0].role", "not \"king\""),
        messages(R"([{"role": 5, "content": "a"}])", "messages[0].role", "must be a string"),
        messages(R"([{"role": "user"}])", "messages[0].content", "missing"),
        messages(R"([{"role": "assistant"}])", "messages[0].content", "missing"),
        messages(R"([{"role": "user", "content": 5}])", "messages[0].content", "not 5"),
        messages(R"([{"role": "user", "content": ["a"]}])",
                 "messages[0].content[0]",
                 "content part"),
        messages(R"([{"role": "user", "content": [{"type": "text"}]}])",
                 "messages[0].content[0].text",
                 "missing"),
        messages(R"([{"role": "user", "content": [{"type": "text", "text": "a"},
                     {"type": "image_url", "image_url": {"url": "u"}}]}])",
                 "messages[0].content[1].type",
                 "'image_url' is not supported"),
        messages(R"([{"role": "tool", "content": "a"}])", "messages[0].tool_call_id", "missing"),
        messages(R"([{"role": "assistant", "tool_calls": [5]}])",
                 "messages[0].tool_calls[0]",
                 "object"),
        messages(
            R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}])",
            "messages[0].tool_calls[0].function.arguments",
            "must be a string"),
        messages(R"([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}])",
                 "messages[0].tool_calls[0].function.name",
                 "missing"),
        with(R"("tools": {})", "tools", "must be an array"),
        with(R"("tools": ["f"])", "tools[0]", "must be a tool"),
        with(R"("tools": [{"type": "function", "function": {"name": "a b"}}])",
             "tools[0].function.name",
             "1 to 64"),
        with(R"("tools": [{"type": "function", "function": {"name": "f", "parameters": []}}])",
             "tools[0].function.parameters",
             "must be an object"),
        with(R"("chat_template_kwargs": "x")", "chat_template_kwargs", "must be an object"),
        with(R"("reasoning_effort": 3)", "reasoning_effort", "must be a string"),
        completion("{}", "prompt", "is missing"),
        completion(R"({"prompt": []})", "prompt", "not empty"),
        completion(R"({"prompt": 5})", "prompt", "not 5"),
        completion(R"({"prompt": [1, "a"]})", "prompt[1]", "a token id"),
        completion(R"({"prompt": [1, -2]})", "prompt[1]", "not -2"),
        completion(R"({"prompt": [1, 4294967296]})", "prompt[1]", "a token id"),
        completion(R"({"prompt": ["a", 1]})", "prompt[1]", "a string or token ids"),
        completion(R"({"prompt": ["a", [1, 2.5]]})", "prompt[1][1]", "not 2.5"),
        completion(R"({"prompt": "a", "logprobs": true})", "logprobs", "an integer in [0, 20]")));

TEST(ParseChat, ReportsTheFirstOfSeveralErrors) {
  auto result = parse_chat(chat_body(R"("temperature": "x", "top_p": "y")"));
  EXPECT_EQ(std::get<ApiError>(result).param, "temperature");
}

TEST(ParseChat, ShowsLongWrongValuesCutAtACharacter) {
  std::string value;
  for (int i = 0; i < 50; ++i) value += "\xC3\xA9";
  auto result = parse_chat(chat_body("\"temperature\": \"" + value + "\""));
  const auto& message = std::get<ApiError>(result).message;
  EXPECT_LT(message.size(), 150u);
  EXPECT_THAT(to_json(std::get<ApiError>(result)), testing::Not(HasSubstr("\xEF\xBF\xBD")));
}

}  // namespace
}  // namespace sluice::server
