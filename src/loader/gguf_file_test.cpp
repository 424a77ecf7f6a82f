#include "loader/gguf_file.h"

#include <gtest/gtest.h>

#include "loader/test_files.h"

namespace sluice::loader {
namespace {

using testing::as_bytes;
using testing::GgufBuilder;
using testing::raw;

Result<GgufFile> parse(const std::string& bytes) {
  return GgufFile::parse(as_bytes(bytes), "x.gguf");
}

// The error of a file that must not parse; empty if it parses.
std::string error_of(const std::string& bytes) {
  const auto file = parse(bytes);
  return file.ok() ? "" : file.error().message;
}

void expect_error(const std::string& bytes, const std::string& part) {
  const std::string message = error_of(bytes);
  EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
  EXPECT_NE(message.find("x.gguf"), std::string::npos) << "got: " << message;
}

GgufBuilder every_kind() {
  GgufBuilder file;
  file.pair("u8", 0, raw<uint8_t>(200))
      .pair("i8", 1, raw<int8_t>(-3))
      .pair("u16", 2, raw<uint16_t>(60000))
      .pair("i16", 3, raw<int16_t>(-300))
      .u32("u32", 4000000000u)
      .pair("i32", 5, raw<int32_t>(-70000))
      .f32("f32", 1e-5f)
      .boolean("yes", true)
      .string("text", "hello")
      .pair("u64", 10, raw<uint64_t>(~uint64_t{0}))
      .pair("i64", 11, raw<int64_t>(-5))
      .pair("f64", 12, raw<double>(0.25))
      .strings("names", {"", "b", "cc"})
      .i32s("numbers", {1, -2})
      .f32s("scores", {0.5f, -1.0f})
      .f32_tensor("a", {4, 2}, 3)
      .tensor("q", {32, 1}, 2, std::string(18, '\x11'));
  return file;
}

TEST(GgufFile, ReadsEveryMetadataType) {
  const std::string bytes = every_kind().build();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto& m = file->metadata;
  EXPECT_EQ(m.integer("u8").value(), 200);
  EXPECT_EQ(m.integer("i8").value(), -3);
  EXPECT_EQ(m.integer("u16").value(), 60000);
  EXPECT_EQ(m.integer("i16").value(), -300);
  EXPECT_EQ(m.integer("u32").value(), 4000000000);
  EXPECT_EQ(m.integer("i32").value(), -70000);
  EXPECT_EQ(m.integer("i64").value(), -5);
  EXPECT_EQ(m.number("f32").value(), 1e-5) << "the shortest decimal of the float32";
  EXPECT_EQ(m.number("f64").value(), 0.25);
  EXPECT_EQ(m.boolean("yes").value(), true);
  EXPECT_EQ(m.string("text").value(), "hello");
  EXPECT_EQ(*m.strings("names").value(), (std::vector<std::string_view>{"", "b", "cc"}));
  EXPECT_EQ(*m.integers("numbers").value(), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(*m.floats("scores").value(), (std::vector<float>{0.5f, -1.0f}));
  EXPECT_FALSE(m.integer("absent").value().has_value());
  EXPECT_EQ(m.integer("u64").error().code, ErrorCode::kCorruptFile) << "does not fit int64";
  EXPECT_EQ(m.string("u8").error().code, ErrorCode::kCorruptFile);
  EXPECT_EQ(m.require_string("absent").error().code, ErrorCode::kCorruptFile);
}

TEST(GgufFile, ShapesAreOutermostFirstAndDataIsInPlace) {
  const std::string bytes = every_kind().build();
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->tensors.size(), 2u);
  EXPECT_EQ(file->tensors[0].shape, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(file->tensors[0].data.size(), 32u);
  EXPECT_EQ(file->tensors[1].type, GgmlType::kQ4_0);
  EXPECT_EQ(file->tensors[1].data.size(), 18u);
  EXPECT_EQ(std::to_integer<int>(file->tensors[1].data[17]), 0x11);
}

TEST(GgufFile, ReadsVersion2) {
  EXPECT_TRUE(parse(every_kind().build(2)).ok());
}

TEST(GgufFile, EveryTruncationIsAnError) {
  const std::string bytes = every_kind().build();
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly this size, so that a sanitizer sees a read past the end.
    const std::string part(bytes.data(), length);
    EXPECT_FALSE(parse(part).ok()) << "of length " << length;
  }
}

TEST(GgufFile, NamesAnUnsupportedTypeAndItsTensor) {
  const auto file = parse(GgufBuilder().tensor("blk.0.w", {256}, 12, std::string(144, 0)).build());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(file.error().message.find("blk.0.w"), std::string::npos);
  EXPECT_NE(file.error().message.find("Q4_K"), std::string::npos);
}

TEST(GgufFile, RefusesOtherFilesAndVersions) {
  expect_error("GGUX" + std::string(100, 0), "'GGUF'");
  expect_error(GgufBuilder().build(1), "version 1");
  expect_error(GgufBuilder().build(4), "version 4");
  expect_error(GgufBuilder().build(0x03000000), "big-endian");
  expect_error(GgufBuilder().u32("split.count", 3).build(), "split");
}

TEST(GgufFile, AbsurdCountsAreErrorsBeforeAnyAllocation) {
  const uint64_t huge = ~uint64_t{0} / 2;
  expect_error("GGUF" + raw<uint32_t>(3) + raw(huge) + raw<uint64_t>(0), "tensors");
  expect_error("GGUF" + raw<uint32_t>(3) + raw<uint64_t>(0) + raw(huge), "metadata pairs");
  expect_error(GgufBuilder().pair("k", 8, raw(huge)).build(), "length");
  expect_error(GgufBuilder().pair("k", 9, raw<uint32_t>(8) + raw(huge)).build(), "strings");
  expect_error(GgufBuilder().pair("k", 9, raw<uint32_t>(4) + raw(huge)).build(), "values");
}

TEST(GgufFile, RefusesBadMetadata) {
  expect_error(GgufBuilder().pair("k", 13, "").build(), "type 13");
  expect_error(GgufBuilder().pair("k", 9, raw<uint32_t>(9) + raw<uint64_t>(1)).build(), "array of");
  expect_error(GgufBuilder().u32("k", 1).u32("k", 2).build(), "twice");
  expect_error(GgufBuilder().u32("general.alignment", 0).build(), "alignment");
  expect_error(GgufBuilder().u32("general.alignment", 24).build(), "alignment");
}

TEST(GgufFile, RefusesBadTensors) {
  const std::string data(64, 0);
  expect_error(GgufBuilder().tensor("t", {16}, 0, data, 8).build(), "no multiple");
  expect_error(GgufBuilder().tensor("t", {16}, 0, data, 1024).build(), "past the end");
  expect_error(GgufBuilder().tensor("t", {16}, 0, data, INT64_MAX / 32 * 32).build(),
               "past the end");
  expect_error(GgufBuilder().tensor("t", {17}, 0, data).build(), "past the end");
  expect_error(GgufBuilder().tensor("t", {}, 0, data).build(), "0 dimensions");
  expect_error(GgufBuilder().tensor("t", {1, 1, 1, 1, 1}, 0, data).build(), "5 dimensions");
  expect_error(GgufBuilder().tensor("t", {0, 4}, 0, data).build(), "dimension of 0");
  expect_error(GgufBuilder().tensor("t", {1u << 31}, 0, data).build(), "dimension");
  const uint64_t big = (uint64_t{1} << 31) - 1;
  expect_error(GgufBuilder().tensor("t", {big, big, big, big}, 0, data).build(), "too large");
  expect_error(GgufBuilder().tensor("t", {16, 2}, 2, data).build(), "rows of 16");
  expect_error(GgufBuilder().tensor("t", {4}, 0, data).tensor("t", {4}, 0, data).build(), "twice");
  expect_error(GgufBuilder().tensor("t", {16}, 0, data).tensor("u", {16}, 0, data, 32).build(),
               "overlap");
}

}  // namespace
}  // namespace sluice::loader
