#include "text/stop_matcher.h"

#include <gtest/gtest.h>

namespace sluice::text {
namespace {

struct Outcome {
  std::string shown;
  std::optional<size_t> matched;
  bool operator==(const Outcome&) const = default;
};

// What the class promises, byte by byte over the whole text.
Outcome expected(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i) {
      const bool ends_here = std::string_view(text).substr(0, end).ends_with(stops[i]);
      if (ends_here && (!best || stops[i].size() > stops[*best].size())) best = i;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

// `cuts`: bit i set means a cut after byte i.
Outcome run(const std::string& text, const std::vector<std::string>& stops, uint32_t cuts) {
  auto matcher = StopMatcher::create(stops).value();
  const Outcome whole = expected(text, stops);
  std::string shown;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && !(cuts >> i & 1)) continue;
    shown += matcher.push(text.substr(start, i + 1 - start));
    start = i + 1;
    // Nothing that is shown is ever taken back.
    EXPECT_TRUE(whole.shown.starts_with(shown)) << text;
  }
  shown += matcher.finish();
  return {shown, matcher.matched()};
}

TEST(StopMatcher, CutsTheSameForEveryChunking) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"hello END rest", {"END"}},
      {"xabcdy", {"abcd", "bc"}},
      {"aaaaab", {"aaab"}},
      {"ababac abab", {"abac"}},
      {"abcabd", {"abd", "zzz"}},
      {"no stop EN", {"END"}},
      {"</s", {"</s>", "<|end|>"}},
      {"žluť ☃x", {"☃"}},
      {"END", {"END"}},
      {"xEND", {"D", "END", "ND"}},
      {"", {"END"}},
      {"plain", {}}};
  for (const auto& [text, stops] : cases) {
    const Outcome whole = expected(text, stops);
    const uint32_t chunkings = text.empty() ? 1 : 1u << (text.size() - 1);
    for (uint32_t cuts = 0; cuts < chunkings; ++cuts) {
      ASSERT_EQ(run(text, stops, cuts), whole) << text << " cut at " << cuts;
    }
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeAStopString) {
  auto matcher = StopMatcher::create({"</s>"}).value();
  EXPECT_EQ(matcher.push("a < b"), "a < b");
  EXPECT_EQ(matcher.push(" x</"), " x");
  EXPECT_EQ(matcher.push("b"), "</b");
  EXPECT_EQ(matcher.push("<"), "");
  EXPECT_EQ(matcher.finish(), "<");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcher, IsSilentOnceStopped) {
  auto matcher = StopMatcher::create({"x", "stop"}).value();
  EXPECT_EQ(matcher.push("a stop b x"), "a ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.matched(), 1u);
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, RefusesAnEmptyString) {
  const auto matcher = StopMatcher::create({"a", ""});
  ASSERT_FALSE(matcher.ok());
  EXPECT_EQ(matcher.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice::text
