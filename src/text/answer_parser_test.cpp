#include "text/answer_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::text {
namespace {

struct Parsed {
  std::string reasoning, content;
  bool operator==(const Parsed&) const = default;
};
void PrintTo(const Parsed& parsed, std::ostream* out) {
  *out << "thought \"" << parsed.reasoning << "\", said \"" << parsed.content << '"';
}

Parsed collect(AnswerParser& parser, const std::vector<std::string>& pieces) {
  std::vector<AnswerPart> parts;
  for (const auto& piece : pieces) parser.push(piece, parts);
  parser.finish(parts);
  Parsed parsed;
  for (const auto& part : parts) {
    const auto& text = std::get<TextPart>(part);
    EXPECT_FALSE(text.text.empty());
    // Thoughts come first.
    EXPECT_TRUE(!text.reasoning || parsed.content.empty());
    (text.reasoning ? parsed.reasoning : parsed.content) += text.text;
  }
  return parsed;
}

std::vector<std::string> cut(const std::string& text, size_t size) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size(); at += size) pieces.push_back(text.substr(at, size));
  return pieces;
}

struct ThinkCase {
  const char* name;
  bool begun;
  std::string text;
  Parsed expected;
};

const ThinkCase kCases[] = {
    {"Both", false, "<think>\nLet me see.\n</think>\n\nIt is 4.", {"Let me see.", "It is 4."}},
    {"Begun", true, "Let me see.\n</think>\n\nIt is 4.", {"Let me see.", "It is 4."}},
    {"BegunAfterALine", true, "\nHm.</think>4", {"Hm.", "4"}},
    {"NoThoughts", false, "It is 4.", {"", "It is 4."}},
    {"EmptyThoughts", false, "<think>\n\n</think>\n\nIt is 4.", {"", "It is 4."}},
    {"EmptyThoughtsBegun", true, "</think>It is 4.", {"", "It is 4."}},
    {"SpaceBefore", false, "\n <think>a</think>b", {"a", "b"}},
    {"SpaceInside", false, "<think> a\n\nb \n</think> c \n d\n", {"a\n\nb", "c \n d\n"}},
    {"SpaceWithoutMarker", false, "  4", {"", "  4"}},
    {"NearlyOpen", false, "<thin ice", {"", "<thin ice"}},
    {"NearlyClosed", true, "a </thin </think>b", {"a </thin", "b"}},
    {"LessThanInside", true, "1 < 2 <</think>b", {"1 < 2 <", "b"}},
    {"LaterMarkersAreText", false, "a <think>b</think> c", {"", "a <think>b</think> c"}},
    {"MarkersAfterThoughts", true, "a</think>b <think> c </think>", {"a", "b <think> c </think>"}},
    {"CutInThoughts", false, "<think>a b \n", {"a b \n", ""}},
    {"CutInCloseMarker", true, "a</thi", {"a</thi", ""}},
    {"CutInOpenMarker", false, " <thi", {"", " <thi"}},
    {"CutBehindThoughts", true, "a</think>\n\n", {"a", ""}},
    {"Nothing", false, "", {"", ""}},
    {"OnlySpace", false, " \n", {"", " \n"}},
    {"Characters", true, "čau 😀\n</think>\nñ", {"čau 😀", "ñ"}},
};

class ThinkParserTest : public testing::TestWithParam<ThinkCase> {};

TEST_P(ThinkParserTest, PartsDoNotDependOnTheCuts) {
  const auto& test = GetParam();
  for (size_t size = 1; size <= test.text.size() + 1; ++size) {
    ThinkParser parser(test.begun);
    EXPECT_EQ(collect(parser, cut(test.text, size)), test.expected) << "in pieces of " << size;
  }
}
INSTANTIATE_TEST_SUITE_P(All, ThinkParserTest, testing::ValuesIn(kCases), [](const auto& info) {
  return info.param.name;
});

TEST(ThinkParser, SaysWhatComesNext) {
  ThinkParser parser(false);
  std::vector<AnswerPart> parts;
  EXPECT_FALSE(parser.in_reasoning());
  parser.push("<think>", parts);
  EXPECT_TRUE(parser.in_reasoning());
  parser.push("a", parts);
  EXPECT_TRUE(parser.in_reasoning());
  parser.push("</think>", parts);
  EXPECT_FALSE(parser.in_reasoning());
}

// Text is shown as it comes: only what may be a marker or the white space before one waits.
TEST(ThinkParser, HoldsBackNoMoreThanItMust) {
  ThinkParser parser(true);
  std::vector<AnswerPart> parts;
  parser.push("one two", parts);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(std::get<TextPart>(parts[0]).text, "one two");
  parser.push(" \n</th", parts);
  EXPECT_EQ(parts.size(), 1u);
  parser.push("e", parts);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(std::get<TextPart>(parts[1]).text, " \n</the");
}

TEST(AnswerParser, TheTemplateAndThePromptSayWhichOne) {
  const std::string plain = "{{ messages }}";
  const std::string thinking = "{% if '</think>' in content %}";
  const auto parse = [](const std::string& source, const std::string& prompt) {
    const auto parser = make_answer_parser(source, prompt);
    return collect(*parser, {"a</think>b"});
  };
  EXPECT_EQ(parse(plain, "<think>\n"), (Parsed{"", "a</think>b"}));
  EXPECT_EQ(parse(thinking, "assistant\n"), (Parsed{"", "a</think>b"}));
  EXPECT_EQ(parse(thinking, "assistant\n<think>\n"), (Parsed{"a", "b"}));
  EXPECT_EQ(parse(thinking, "assistant\n<think>"), (Parsed{"a", "b"}));
  // Thoughts that the prompt has ended.
  EXPECT_EQ(parse(thinking, "<think>\n\n</think>\n\n"), (Parsed{"", "a</think>b"}));
}

TEST(PlainParser, PassesEverything) {
  PlainParser parser;
  EXPECT_EQ(collect(parser, {"<think>", " a</think>", "\n"}), (Parsed{"", "<think> a</think>\n"}));
}

}  // namespace
}  // namespace sluice::text
