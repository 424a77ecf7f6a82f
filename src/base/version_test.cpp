#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Version, IsThreeNumbers) {
  EXPECT_THAT(version(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

TEST(Version, RevisionIsACommitOrUnknown) {
  EXPECT_THAT(revision(), testing::MatchesRegex("([0-9a-f]{10}[0-9a-f]*(-dirty)?)|unknown"));
}

TEST(Version, LineHoldsEveryPart) {
  EXPECT_THAT(version_line(), testing::StartsWith(std::string("sluice ") + version() + " ("));
  EXPECT_THAT(version_line(), testing::HasSubstr(revision()));
  EXPECT_THAT(version_line(), testing::HasSubstr("MLX 0."));
}

}  // namespace
}  // namespace sluice
