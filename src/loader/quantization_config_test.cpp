#include "loader/quantization_config.h"

#include <gtest/gtest.h>

namespace sluice::loader {
namespace {

Result<QuantizationConfig> parse(const char* text) {
  return QuantizationConfig::parse(nlohmann::json::parse(text));
}

void expect_error(const char* text, ErrorCode code, const std::string& part) {
  const auto result = parse(text);
  ASSERT_FALSE(result.ok()) << text;
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

TEST(QuantizationConfig, NoKeyMeansNoFormat) {
  const auto result = parse(R"({"model_type":"llama"})");
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->format_of("model.layers.0.mlp.up_proj").has_value());
}

TEST(QuantizationConfig, ModulesOverrideTheDefault) {
  const auto result = parse(R"({"quantization":{"group_size":64,"bits":4,"mode":"affine",
      "a":{"group_size":32,"bits":8},"b":false,"c":true,"d":{}}})");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->format_of("other"), (AffineFormat{4, 64}));
  EXPECT_EQ(result->format_of("a"), (AffineFormat{8, 32}));
  EXPECT_FALSE(result->format_of("b").has_value());
  EXPECT_EQ(result->format_of("c"), (AffineFormat{4, 64}));
  EXPECT_EQ(result->format_of("d"), (AffineFormat{4, 64})) << "the affine mode's own defaults";
  EXPECT_TRUE(result->demands("a"));
  EXPECT_FALSE(result->demands("b"));
  EXPECT_FALSE(result->demands("other"));
}

TEST(QuantizationConfig, ReadsTheHuggingFaceCopyToo) {
  const auto result = parse(R"({"quantization_config":{"group_size":32,"bits":3}})");
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->format_of("x"), (AffineFormat{3, 32}));
}

TEST(QuantizationConfig, AcceptsEveryAffinePair) {
  for (int bits : {2, 3, 4, 5, 6, 8}) {
    for (int group : {32, 64, 128}) {
      const nlohmann::json config = {{"quantization", {{"bits", bits}, {"group_size", group}}}};
      EXPECT_TRUE(QuantizationConfig::parse(config).ok()) << bits << " " << group;
    }
  }
}

TEST(QuantizationConfig, NamesWhatItCannotRead) {
  const auto unsupported = ErrorCode::kUnsupported;
  expect_error(
      R"({"quantization":{"mode":"mxfp4","bits":4,"group_size":32}})", unsupported, "mxfp4");
  expect_error(R"({"quantization":{"bits":4,"group_size":64,"lm_head":{"mode":"nvfp4"}}})",
               unsupported,
               "lm_head");
  expect_error(R"({"quantization":{"bits":7,"group_size":64}})", unsupported, "7 bits");
  expect_error(R"({"quantization":{"bits":4,"group_size":16}})", unsupported, "groups of 16");
  expect_error(R"({"quantization":{"bits":-4}})", unsupported, "-4 bits");
  expect_error(R"({"quantization_config":{"quant_method":"awq","bits":4,"group_size":128}})",
               unsupported,
               "awq");
  expect_error(R"({"quantization":{"bits":4,"group_size":64,"quantize_activations":true}})",
               unsupported,
               "activations");
}

TEST(QuantizationConfig, RefusesWrongTypes) {
  const auto corrupt = ErrorCode::kCorruptFile;
  expect_error(R"({"quantization":4})", corrupt, "object");
  expect_error(R"({"quantization":{"bits":"4"}})", corrupt, "bits");
  expect_error(R"({"quantization":{"bits":4,"lm_head":7}})", corrupt, "lm_head");
}

}  // namespace
}  // namespace sluice::loader
