#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <string>

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

class Log : public testing::Test {
 protected:
  void SetUp() override { unsetenv(kLogLevelVariable); }
  void TearDown() override {
    unsetenv(kLogLevelVariable);
    ASSERT_TRUE(init_logging().ok());
  }

  // What stderr gets when one line of each level is logged at `level`.
  static std::string logged_at(std::string_view level) {
    testing::internal::CaptureStderr();
    EXPECT_TRUE(init_logging(level).ok());
    spdlog::debug("a debug {}", 1);
    spdlog::info("an info {}", 2);
    spdlog::warn("a warning {}", 3);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, LevelDecidesWhatIsShown) {
  const std::string lines = logged_at("info");
  EXPECT_THAT(lines, Not(HasSubstr("a debug")));
  EXPECT_THAT(lines, HasSubstr("info an info 2\n"));
  EXPECT_THAT(lines, HasSubstr("warning a warning 3\n"));
  EXPECT_EQ(logged_at("off"), "");
}

TEST_F(Log, DefaultIsWarn) {
  const std::string lines = logged_at("");
  EXPECT_THAT(lines, Not(HasSubstr("an info")));
  EXPECT_THAT(lines, HasSubstr("a warning 3"));
}

TEST_F(Log, EnvironmentSetsTheLevelAndAFlagWins) {
  setenv(kLogLevelVariable, "debug", 1);
  EXPECT_THAT(logged_at(""), HasSubstr("a debug 1"));
  EXPECT_THAT(logged_at("warn"), Not(HasSubstr("a debug")));
}

TEST_F(Log, NothingGoesToStdout) {
  testing::internal::CaptureStdout();
  logged_at("trace");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(Log, UnknownLevelIsAnErrorThatListsTheLevels) {
  const Status flag = init_logging("loud");
  ASSERT_FALSE(flag.ok());
  EXPECT_EQ(flag.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(flag.error().message, HasSubstr("'loud'; it may be trace, debug, info"));
  setenv(kLogLevelVariable, "chatty", 1);
  const Status variable = init_logging();
  ASSERT_FALSE(variable.ok());
  EXPECT_THAT(variable.error().message, HasSubstr("SLUICE_LOG is 'chatty'"));
}

}  // namespace
}  // namespace sluice
