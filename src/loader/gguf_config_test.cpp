#include "loader/gguf_config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loader/test_files.h"

namespace sluice::loader {
namespace {

using testing::as_bytes;
using testing::GgufBuilder;
using testing::raw_all;
using testing::tiny_llama;
using testing::tiny_llama_metadata;

Result<nlohmann::json> config_of(const std::string& bytes) {
  SLUICE_TRY(const auto file, GgufFile::parse(as_bytes(bytes), "x.gguf"));
  return config_from_gguf(file);
}

void expect_error(const GgufBuilder& file, const std::string& part) {
  const auto config = config_of(file.build());
  ASSERT_FALSE(config.ok()) << "expected: " << part;
  EXPECT_NE(config.error().message.find(part), std::string::npos) << config.error().message;
}

TEST(GgufConfig, SpeaksHuggingFacesTerms) {
  const auto config = config_of(tiny_llama().build());
  ASSERT_TRUE(config.ok()) << config.error().message;
  const nlohmann::json expected = {{"model_type", "llama"},
                                   {"num_hidden_layers", 1},
                                   {"hidden_size", 64},
                                   {"intermediate_size", 96},
                                   {"max_position_embeddings", 128},
                                   {"num_attention_heads", 2},
                                   {"num_key_value_heads", 1},
                                   {"head_dim", 32},
                                   {"rms_norm_eps", 1e-5},
                                   {"rope_theta", 10000.0},
                                   {"vocab_size", 5},
                                   {"tie_word_embeddings", true},
                                   {"attention_bias", false},
                                   {"mlp_bias", false},
                                   {"hidden_act", "silu"}};
  EXPECT_EQ(*config, expected);
}

TEST(GgufConfig, SeesBiasesHeadAndWindow) {
  auto file = tiny_llama();
  file.f32_tensor("output.weight", {64, 5})
      .f32_tensor("blk.0.attn_q.bias", {64})
      .u32("llama.attention.sliding_window", 64);
  const auto config = config_of(file.build());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ((*config)["tie_word_embeddings"], false);
  EXPECT_EQ((*config)["attention_bias"], true);
  EXPECT_EQ((*config)["model_type"], "mistral");
  EXPECT_EQ((*config)["sliding_window"], 64);
}

TEST(GgufConfig, ReadsLinearAndYarnScaling) {
  auto linear = tiny_llama();
  linear.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4);
  EXPECT_EQ(config_of(linear.build()).value()["rope_scaling"],
            nlohmann::json({{"rope_type", "linear"}, {"factor", 4.0}}));
  auto yarn = tiny_llama("qwen2");
  yarn.string("qwen2.rope.scaling.type", "yarn")
      .f32("qwen2.rope.scaling.factor", 4)
      .u32("qwen2.rope.scaling.original_context_length", 32768)
      .f32("qwen2.rope.scaling.yarn_beta_fast", 16);
  EXPECT_EQ(config_of(yarn.build()).value()["rope_scaling"],
            nlohmann::json({{"rope_type", "yarn"},
                            {"factor", 4.0},
                            {"original_max_position_embeddings", 32768},
                            {"beta_fast", 16.0}}));
  auto longrope = tiny_llama();
  longrope.string("llama.rope.scaling.type", "longrope");
  expect_error(longrope, "longrope");
  auto no_factor = tiny_llama();
  no_factor.string("llama.rope.scaling.type", "linear");
  expect_error(no_factor, "rope.scaling.factor");
}

// Llama 3.1's factors, as its converter computes them.
std::vector<float> llama3_factors(double factor, double base) {
  std::vector<float> factors;
  for (int i = 0; i < 16; ++i) {
    const double wavelength = 2 * std::acos(-1.0) * std::pow(base, i / 16.0);
    if (wavelength < 8192 / 4.0) {
      factors.push_back(1);
    } else if (wavelength > 8192) {
      factors.push_back(float(factor));
    } else {
      const double smooth = (8192 / wavelength - 1) / 3;
      factors.push_back(float(1 / ((1 - smooth) / factor + smooth)));
    }
  }
  return factors;
}

TEST(GgufConfig, RecoversLlama3Scaling) {
  auto factors = llama3_factors(8, 10000);
  const auto good = tiny_llama().tensor("rope_freqs.weight", {16}, 0, raw_all(factors));
  EXPECT_EQ(config_of(good.build()).value()["rope_scaling"],
            nlohmann::json({{"rope_type", "llama3"},
                            {"factor", 8.0},
                            {"low_freq_factor", 1.0},
                            {"high_freq_factor", 4.0},
                            {"original_max_position_embeddings", 8192}}));
  factors[3] = 1.5;
  expect_error(tiny_llama().tensor("rope_freqs.weight", {16}, 0, raw_all(factors)), "Llama 3");
  expect_error(tiny_llama().f32_tensor("rope_freqs.weight", {8}), "16 float32");
  const auto neutral = tiny_llama().f32_tensor("rope_freqs.weight", {16});
  EXPECT_FALSE(config_of(neutral.build()).value().contains("rope_scaling"));
}

TEST(GgufConfig, RefusesWhatItWouldComputeWrongly) {
  expect_error(GgufBuilder().string("general.architecture", "gemma9"), "gemma9");
  expect_error(GgufBuilder().string("general.architecture", "gemma9"), "llama, qwen2, qwen3");
  expect_error(GgufBuilder(), "general.architecture");
  expect_error(tiny_llama_metadata(), "token_embd.weight");
  expect_error(tiny_llama().u32("llama.expert_count", 8), "expert_count");
  expect_error(tiny_llama().f32("llama.attention.scale", 1), "attention.scale");
  expect_error(tiny_llama().f32("llama.logit_scale", 0.5f), "logit_scale");
  expect_error(tiny_llama().u32("llama.rope.dimension_count", 16), "partial rope");
  expect_error(tiny_llama().u32("llama.attention.value_length", 16), "value_length");
  expect_error(tiny_llama().u32("llama.attention.key_length", 31), "31");
}

TEST(GgufConfig, OneValuePerLayerMustBeTheSame) {
  GgufBuilder file;
  file.string("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 8)
      .u32("llama.embedding_length", 64)
      .i32s("llama.feed_forward_length", {96, 96})
      .u32("llama.attention.head_count", 2)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
      .f32_tensor("token_embd.weight", {64, 5});
  EXPECT_EQ(config_of(file.build()).value()["intermediate_size"], 96);
  file.i32s("llama.attention.head_count_kv", {1, 2});
  expect_error(file, "differs from layer to layer");
}

TEST(GgufTensorRole, MapsNamesAndRowOrderPerFamily) {
  const std::string bytes = tiny_llama().build();
  const auto file = GgufFile::parse(as_bytes(bytes), "x.gguf").value();
  const auto config = config_from_gguf(file).value();
  const auto role = [&](const char* name, const char* architecture) {
    GgufTensor tensor;
    tensor.name = name;
    tensor.shape = {64, 64};
    return gguf_tensor_role(tensor, architecture, config).value();
  };
  EXPECT_EQ(role("blk.11.attn_q.weight", "llama").name, "model.layers.11.self_attn.q_proj.weight");
  EXPECT_EQ(role("blk.11.attn_q.weight", "llama").interleaved_head_rows, 32);
  EXPECT_EQ(role("blk.0.attn_k.bias", "llama").interleaved_head_rows, 32);
  EXPECT_EQ(role("blk.0.attn_v.weight", "llama").interleaved_head_rows, 0);
  EXPECT_EQ(role("blk.0.attn_q.weight", "qwen3").interleaved_head_rows, 0);
  EXPECT_EQ(role("blk.0.ffn_norm.weight", "qwen3").name,
            "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(role("output.weight", "llama").name, "lm_head.weight");
  EXPECT_TRUE(role("rope_freqs.weight", "llama").folded_into_config);
  for (const char* foreign : {"blk.x.attn_q.weight", "blk.07.attn_q.weight", "blk.1.new.weight"}) {
    EXPECT_EQ(role(foreign, "llama").name, foreign);
  }
  GgufTensor odd;
  odd.name = "blk.0.attn_q.weight";
  odd.shape = {33, 64};
  EXPECT_FALSE(gguf_tensor_role(odd, "llama", config).ok());
}

}  // namespace
}  // namespace sluice::loader
