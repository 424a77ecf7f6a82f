#include "loader/safetensors.h"

#include <gtest/gtest.h>

#include "loader/test_files.h"

namespace sluice::loader {
namespace {

using testing::as_bytes;
using testing::raw;
using testing::SafetensorsBuilder;

void expect_error(const std::string& bytes, const std::string& part) {
  const auto result = parse_safetensors(as_bytes(bytes), "x.safetensors");
  ASSERT_FALSE(result.ok()) << "expected: " << part;
  EXPECT_EQ(result.error().code, ErrorCode::kCorruptFile);
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  EXPECT_NE(result.error().message.find("x.safetensors"), std::string::npos);
}

SafetensorsBuilder two_tensors() {
  SafetensorsBuilder file;
  file.f32("b", {2, 3}, 7).add("a", "U32", {1}, raw<uint32_t>(5));
  file.header()["__metadata__"] = {{"format", "mlx"}};
  return file;
}

// A header given as text, with data bytes behind it.
std::string with_header(const std::string& header, size_t data = 0) {
  return raw<uint64_t>(header.size()) + header + std::string(data, 0);
}

TEST(Safetensors, ReadsTensorsInNameOrder) {
  const std::string bytes = two_tensors().build();
  const auto result = parse_safetensors(as_bytes(bytes), "x.safetensors");
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->size(), 2u);
  EXPECT_EQ((*result)[0].name, "a");
  EXPECT_EQ((*result)[0].dtype, "U32");
  EXPECT_EQ((*result)[1].shape, (std::vector<int64_t>{2, 3}));
  float value = 0;
  std::memcpy(&value, (*result)[1].data.data() + 20, sizeof value);
  EXPECT_EQ(value, 7);
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const std::string bytes = two_tensors().build();
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string part(bytes.data(), length);
    EXPECT_FALSE(parse_safetensors(as_bytes(part), "x").ok()) << "of length " << length;
  }
  EXPECT_FALSE(parse_safetensors(as_bytes(bytes + "x"), "x").ok()) << "a byte too many";
}

TEST(Safetensors, RefusesBadHeaders) {
  expect_error(raw(~uint64_t{0}), "header");
  expect_error(raw<uint64_t>(100'000'001) + std::string(16, ' '), "header");
  expect_error(with_header("{"), "JSON");
  expect_error(with_header("[]"), "object");
  expect_error(with_header(R"({"a":1})"), "description");
  expect_error(with_header(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                           R"("a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"),
               "twice");
  expect_error(with_header(std::string(1000, '[') + std::string(1000, ']')), "nested");
  expect_error(with_header("{\"\xff\":1}"), "JSON");
}

TEST(Safetensors, RefusesBadEntries) {
  const auto entry = [](const std::string& body, size_t data) {
    return with_header("{\"a\":{" + body + "}}", data);
  };
  expect_error(entry(R"("dtype":"F99","shape":[1],"data_offsets":[0,4])", 4), "F99");
  expect_error(entry(R"("shape":[1],"data_offsets":[0,4])", 4), "dtype");
  expect_error(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4), "shape");
  expect_error(entry(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])", 4), "shape");
  expect_error(entry(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", 4), "shape");
  expect_error(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0])", 4), "data_offsets");
  expect_error(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])", 4), "data_offsets");
  expect_error(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4), "does not fill");
  expect_error(entry(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", 8), "complete");
  expect_error(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", 8), "begins at 4");
  expect_error(entry(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])", 0),
               "does not fill");
  expect_error(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                           R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                           12),
               "begins at 4");
}

}  // namespace
}  // namespace sluice::loader
