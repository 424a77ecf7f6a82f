#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::text {
namespace {

constexpr const char* kUser = R"([{"role": "user", "content": "Hi"}])";

std::string render(std::string_view source,
                   std::string_view messages = kUser,
                   std::string_view kwargs = {},
                   std::string_view tools = {}) {
  const auto chat = ChatTemplate::from_source(source, "<s>", "</s>").value();
  return chat.render({messages, tools, kwargs, true}).value();
}

Error error_of(std::string_view source, const ChatRenderInput& input) {
  return ChatTemplate::from_source(source, "<s>", "</s>").value().render(input).error();
}

TEST(ChatTemplate, TrimsBlocksAndKnowsTheModelsVariables) {
  EXPECT_EQ(render("{{ bos_token }}\n  {% for m in messages %}\n{{ m.role }}: {{ m['content'] }}\n"
                   "  {% endfor %}\n{% if add_generation_prompt %}A:{% endif %}{{ eos_token }}"),
            "<s>\nuser: Hi\nA:</s>");
  const auto without = ChatTemplate::from_source("{{ bos_token is defined }}", "", "").value();
  EXPECT_EQ(without.render({kUser}).value(), "False");
}

TEST(ChatTemplate, TojsonIsPythons) {
  EXPECT_EQ(render("{{ x | tojson }}",
                   kUser,
                   R"({"x": {"b": [1, 2.0, 1e20, true, null], "a": "<é\"'&>\n"}})"),
            R"({"b": [1, 2.0, 1e+20, true, null], "a": "<é\"'&>\n"})");
  EXPECT_EQ(
      render("{{ x | tojson(indent=2, sort_keys=true) }}", kUser, R"({"x": {"b": [], "a": [1]}})"),
      "{\n  \"a\": [\n    1\n  ],\n  \"b\": []\n}");
  EXPECT_EQ(render("{{ x | tojson(ensure_ascii=true, separators=(',', ':')) }}",
                   kUser,
                   R"({"x": ["é😀", 1]})"),
            R"(["\u00e9\ud83d\ude00",1])");
}

TEST(ChatTemplate, SpellsValuesAsPython) {
  EXPECT_EQ(render("{{ x }} {{ y }} {{ z }} {{ t }} {{ n }} {{ x | string }}",
                   kUser,
                   R"({"x": 1e20, "y": 0.00001, "z": 3.0, "t": true, "n": null})"),
            "1e+20 1e-05 3.0 True None 1e+20");
}

TEST(ChatTemplate, KnowsPythonsMethods) {
  const char* kwargs = R"({"s": "  a,b,,c  ", "t": "x\r\ny\u2028z"})";
  EXPECT_EQ(
      render("{{ s.strip().split(',') | length }}|{{ s.lstrip().rstrip() }}|"
             "{{ s.strip().rsplit(',', 1)[0] }}|{{ s.strip().partition(',')[2] }}|"
             "{{ 'abc'.removeprefix('a').removesuffix('c') }}|{{ t.splitlines() | join('+') }}|"
             "{{ '7'.zfill(3) }}|{{ 'a  b'.split() | join('_') }}|{{ 'ab'.center(5, '*') }}",
             kUser,
             kwargs),
      "4|a,b,,c|a,b,|b,,c|b|x+y+z|007|a_b|**ab*");
  EXPECT_EQ(
      render("{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}{{ x.get('q', 'none') }}",
             kUser,
             R"({"x": {"z": 1, "a": 2}})"),
      "z=1;a=2;none");
}

TEST(ChatTemplate, NoneIsNotIterableAndGenerationIsAScope) {
  EXPECT_EQ(render("{{ tools is iterable }} {{ tools is none }} {{ 'x' is iterable }}"),
            "False True True");
  EXPECT_EQ(render("{% set a = 1 %}{%- generation -%} {{ a }}{% set a = 2 %} {%- endgeneration %}"
                   "{{ a }}"),
            "11");
}

TEST(ChatTemplate, TreatsMessagesAsTransformersDoes) {
  EXPECT_EQ(render("{{ messages[0].x is defined }} {{ messages[0].content is defined }}",
                   R"([{"role": "user", "content": null, "x": 1}])"),
            "True False");
  EXPECT_EQ(render("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}",
                   R"([{"role": "assistant", "reasoning": "r"}])"),
            "rr");
}

TEST(ChatTemplate, ARefusalOfTheTemplateIsItsMessage) {
  const Error error = error_of("{{ raise_exception('roles must alternate') }}", {kUser});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "roles must alternate");
}

TEST(ChatTemplate, StrftimeNowIsTheLocalTime) {
  EXPECT_EQ(
      render("{{ strftime_now('%Y') | length }}{{ strftime_now('') }}{{ strftime_now('%%x') }}"),
      "4%x");
}

TEST(ChatTemplate, RunawayTemplatesEnd) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* source :
       {"{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}",
        "{{ 'x' * 10000000000 }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"}) {
    const auto chat = ChatTemplate::from_source(source, "", "").value();
    EXPECT_EQ(chat.render({kUser}).error().code, ErrorCode::kUnsupported) << source;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST(ChatTemplate, RefusesWhatIsNoTemplateAndNoChat) {
  const auto broken = ChatTemplate::from_source("a\n{% for %}", "", "");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::kCorruptFile);
  EXPECT_NE(broken.error().message.find(":2"), std::string::npos) << broken.error().message;

  const std::pair<ChatRenderInput, const char*> bad[] = {
      {{"{"}, "the messages are not valid JSON"},
      {{"{}"}, "the messages are not a JSON array"},
      {{"[1]"}, "message 0 is not a JSON object"},
      {{kUser, "{}"}, "the tools are not a JSON array"},
      {{kUser, "", "[]"}, "the template kwargs are not a JSON object"},
      {{kUser, "", R"({"messages": []})"}, "may not set \"messages\""}};
  for (const auto& [input, message] : bad) {
    const Error error = error_of("x", input);
    EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
    EXPECT_NE(error.message.find(message), std::string::npos) << error.message;
  }
  EXPECT_EQ(error_of("{{ nothing.at.all }}", {kUser}).code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace sluice::text
