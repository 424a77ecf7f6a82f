#include "base/config_reader.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using nlohmann::json;

TEST(ConfigReader, ReadsValuesAndFallbacks) {
  const json object = {{"a", 3}, {"b", 2.5}, {"c", true}, {"d", "x"}, {"e", nullptr}};
  ConfigReader reader(object, "config.json");
  EXPECT_EQ(reader.integer("a", 1, 10), 3);
  EXPECT_EQ(reader.number("a"), 3.0);
  EXPECT_EQ(reader.number("b"), 2.5);
  EXPECT_TRUE(reader.boolean("c"));
  EXPECT_EQ(reader.text("d"), "x");
  EXPECT_EQ(reader.integer("e", 1, 10, 7), 7);
  EXPECT_EQ(reader.text("f", "none"), "none");
  EXPECT_TRUE(reader.status().ok());
}

TEST(ConfigReader, KeepsTheFirstErrorAndNamesTheKey) {
  const json object = {{"a", 3.5}, {"b", "x"}};
  ConfigReader reader(object, "config.json");
  EXPECT_EQ(reader.integer("a", 1, 10), 0);
  reader.number("b");
  ASSERT_FALSE(reader.status().ok());
  EXPECT_EQ(reader.status().error().message,
            "config.json: \"a\" is 3.5; it must be an integer from 1 to 10");
}

TEST(ConfigReader, RefusesValuesOutOfRangeAndMissingKeys) {
  const json huge = {{"a", uint64_t{1} << 63}};
  ConfigReader reader(huge, "config.json");
  reader.integer("a", -5, 5);
  EXPECT_FALSE(reader.status().ok());

  const json empty = json::object();
  ConfigReader missing(empty, "config.json");
  missing.integer("hidden_size", 1, 5);
  EXPECT_EQ(missing.status().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.status().error().message, "config.json lacks the key \"hidden_size\"");

  const json array = json::array();
  ConfigReader not_object(array, "config.json");
  EXPECT_FALSE(not_object.status().ok());
  EXPECT_FALSE(not_object.has("a"));
}

}  // namespace
}  // namespace sluice
