#include "text/grammar.h"

#include <gtest/gtest.h>

#include <thread>

#include "text/test_tokenizers.h"

namespace sluice::text {
namespace {

using testing::byte_level;
using testing::kBos;
using testing::kEnd;
using Ids = std::vector<int32_t>;

// Wider than the vocabulary, as padded logits are, and no multiple of 32.
constexpr int32_t kVocab = 270;

GrammarFactory factory() {
  return GrammarFactory::create(byte_level(), kVocab, Ids{kEnd}).value();
}

Ids allowed(TokenConstraint& constraint) {
  std::vector<uint32_t> words((kVocab + 31) / 32 + 1, ~0u);
  constraint.fill_mask(words).or_throw();
  Ids ids;
  for (size_t i = 0; i < words.size() * 32; ++i) {
    if (words[i / 32] >> (i % 32) & 1) ids.push_back(static_cast<int32_t>(i));
  }
  return ids;
}

Ids bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

TEST(Grammar, ARegexMasksCommitsAndEnds) {
  auto matcher = factory().from_regex("hel[xy]").value();
  // "hel" is forced, so the mask has its own spelling only; accept() takes any.
  EXPECT_EQ(allowed(matcher), Ids{257});
  matcher.accept(256).or_throw();
  EXPECT_EQ(allowed(matcher), Ids{'l'});
  EXPECT_FALSE(matcher.is_accepting().value());
  matcher.accept('l').or_throw();
  matcher.accept('x').or_throw();
  EXPECT_TRUE(matcher.is_done().value());
  EXPECT_TRUE(matcher.is_accepting().value());
  EXPECT_EQ(allowed(matcher), Ids{kEnd});
  // An end token after the end is fine, anything else is not.
  EXPECT_FALSE(matcher.accept('x').ok());
  EXPECT_TRUE(matcher.accept(kEnd).ok());
  EXPECT_EQ(allowed(matcher), Ids{kEnd});
}

TEST(Grammar, ATokenThatIsNotAllowedChangesNothing) {
  auto matcher = factory().from_regex("ab").value();
  for (const int32_t id : {int32_t{'b'}, kBos, kEnd, kVocab, 1'000'000, -1}) {
    const Status status = matcher.accept(id);
    ASSERT_FALSE(status.ok()) << id;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(allowed(matcher), Ids{'a'});
  EXPECT_TRUE(matcher.accept('a').ok());
}

TEST(Grammar, RollsBackOverTheEnd) {
  auto matcher = factory().from_regex("ab+").value();
  EXPECT_EQ(matcher.try_accept(bytes("abb!")).value(), 3u);
  matcher.accept(kEnd).or_throw();
  matcher.accept(kEnd).or_throw();
  matcher.rollback(3).or_throw();
  EXPECT_EQ(allowed(matcher), (Ids{'b', kEnd}));
  EXPECT_FALSE(matcher.rollback(3).ok());
  matcher.rollback(2).or_throw();
  EXPECT_EQ(allowed(matcher), Ids{'a'});
  matcher.accept('a').or_throw();
  matcher.reset().or_throw();
  EXPECT_EQ(allowed(matcher), Ids{'a'});
}

TEST(Grammar, CountAllowedChangesNothing) {
  auto matcher = factory().from_regex("abc").value();
  EXPECT_EQ(matcher.count_allowed(bytes("abx")).value(), 2u);
  EXPECT_EQ(matcher.count_allowed(bytes("abc")).value(), 3u);
  EXPECT_EQ(allowed(matcher), Ids{'a'});
}

TEST(Grammar, ForcesTokensInTheTokenizersSpelling) {
  auto matcher = factory().from_regex("hello [0-9]").value();
  const Ids forced = matcher.forced().value();
  EXPECT_EQ(byte_level().decode(forced, true).value(), "hello ");
  EXPECT_EQ(forced.front(), 257);
  EXPECT_EQ(matcher.try_accept(forced).value(), forced.size());
  EXPECT_TRUE(matcher.forced().value().empty());
}

TEST(Grammar, AJsonSchemaAcceptsItsInstancesOnly) {
  const char* schema =
      R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
          "additionalProperties": false})";
  auto matcher = factory().from_json_schema(schema).value();
  const Ids good = bytes(R"({"n": 42})");
  EXPECT_EQ(matcher.count_allowed(good).value(), good.size());
  EXPECT_EQ(matcher.count_allowed(bytes(R"({"m": 42})")).value(), 2u);
  matcher.try_accept(good).value();
  EXPECT_TRUE(matcher.is_accepting().value());
}

TEST(Grammar, LarkGrammarsRecurse) {
  auto matcher = factory().from_lark("start: \"(\" start? \")\"").value();
  EXPECT_EQ(matcher.count_allowed(bytes("((()))")).value(), 6u);
  EXPECT_EQ(matcher.count_allowed(bytes("(()))")).value(), 4u);
}

TEST(Grammar, ControlTokensAreNoText) {
  auto matcher = factory().from_regex("<\\|bos\\|>").value();
  EXPECT_EQ(allowed(matcher), Ids{'<'});
}

TEST(Grammar, CopiesGoTheirOwnWaysOnOtherThreads) {
  auto matcher = factory().from_regex("(ab)*").value();
  matcher.accept('a').or_throw();
  auto copy = matcher.deep_copy().value();
  std::thread other([&] { copy.accept('b').or_throw(); });
  EXPECT_EQ(allowed(matcher), Ids{'b'});
  other.join();
  EXPECT_EQ(allowed(copy), (Ids{'a', kEnd}));
  copy.rollback(2).or_throw();
}

TEST(Grammar, RefusesBadGrammarsAndSizes) {
  const GrammarFactory grammars = factory();
  for (const auto& matcher : {grammars.from_json_schema("{"),
                              grammars.from_json_schema(R"({"type": "no such type"})"),
                              grammars.from_json_schema(R"({"type": "string", "format": "nope"})"),
                              grammars.from_regex("("),
                              grammars.from_lark("start: missing")}) {
    ASSERT_FALSE(matcher.ok());
    EXPECT_EQ(matcher.error().code, ErrorCode::kInvalidArgument);
    EXPECT_FALSE(matcher.error().message.empty());
  }
  EXPECT_FALSE(GrammarFactory::create(byte_level(), kVocab, Ids{}).ok());
  EXPECT_FALSE(GrammarFactory::create(byte_level(), kVocab, Ids{kVocab}).ok());
  EXPECT_FALSE(GrammarFactory::create(byte_level(), 0, Ids{kEnd}).ok());
  auto matcher = grammars.from_regex("a").value();
  std::vector<uint32_t> small(8);
  EXPECT_FALSE(matcher.fill_mask(small).ok());
}

TEST(Grammar, LimitsHoldAtCompileTime) {
  const auto grammars =
      GrammarFactory::create(byte_level(), kVocab, Ids{kEnd}, {.initial_lexer_fuel = 10}).value();
  const auto matcher = grammars.from_regex("[a-z]{1,500}(foo|bar|baz){7,90}");
  ASSERT_FALSE(matcher.ok());
}

}  // namespace
}  // namespace sluice::text
