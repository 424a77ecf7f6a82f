#include "loader/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include "loader/gguf_file.h"
#include "loader/json_text.h"
#include "loader/json_writer.h"
#include "loader/test_files.h"

namespace sluice::loader {
namespace {

using nlohmann::json;
using testing::as_bytes;
using testing::GgufBuilder;

Result<GgufTokenizer> convert(const GgufBuilder& builder) {
  const std::string bytes = builder.build();
  SLUICE_TRY(const auto file, GgufFile::parse(as_bytes(bytes), "x.gguf"));
  return tokenizer_from_gguf(file.metadata);
}

void expect_error(const GgufBuilder& file, const std::string& part) {
  const auto result = convert(file);
  ASSERT_FALSE(result.ok()) << "expected: " << part;
  EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
}

GgufBuilder bpe(const std::string& pre = "smollm") {
  GgufBuilder file;
  file.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", pre)
      .strings("tokenizer.ggml.tokens", {"<|im_start|>", "a", "\"", "a\"", "<think>", "[PAD5]"})
      .i32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 4, 4})
      .strings("tokenizer.ggml.merges", {"a \""})
      .u32("tokenizer.ggml.bos_token_id", 0)
      .u32("tokenizer.ggml.eos_token_id", 1);
  return file;
}

GgufBuilder spm() {
  GgufBuilder file;
  file.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens",
               {"<unk>", "<s>", "</s>", "<0x41>", "a", "b", "c", "ab", "abc", "bc"})
      .i32s("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1, 1, 1, 1, 1})
      .f32s("tokenizer.ggml.scores", {0, 0, 0, 0, -9, -9, -9, -2, -1, -3})
      .u32("tokenizer.ggml.bos_token_id", 1)
      .u32("tokenizer.ggml.eos_token_id", 2)
      .u32("tokenizer.ggml.unknown_token_id", 0);
  return file;
}

TEST(GgufTokenizer, WritesByteLevelBpe) {
  const auto result = convert(bpe());
  ASSERT_TRUE(result.ok()) << result.error().message;
  const json tokenizer = json::parse(result->tokenizer_json);
  EXPECT_EQ(tokenizer["model"]["type"], "BPE");
  EXPECT_EQ(tokenizer["model"]["vocab"]["a\""], 3);
  EXPECT_EQ(tokenizer["model"]["merges"], json::parse(R"([["a","\""]])"));
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], false);
  EXPECT_TRUE(tokenizer["model"]["unk_token"].is_null());
  EXPECT_TRUE(tokenizer["normalizer"].is_null());
  EXPECT_TRUE(tokenizer["post_processor"].is_null()) << "no BOS unless the file says so";
  EXPECT_EQ(tokenizer["decoder"]["type"], "ByteLevel");
  EXPECT_EQ(tokenizer["pre_tokenizer"]["pretokenizers"][0]["type"], "Digits");
  ASSERT_EQ(tokenizer["added_tokens"].size(), 2u) << "[PAD5] fills the embedding only";
  EXPECT_EQ(tokenizer["added_tokens"][0]["special"], true);
  EXPECT_EQ(tokenizer["added_tokens"][1]["content"], "<think>");
  EXPECT_EQ(tokenizer["added_tokens"][1]["special"], false);
  EXPECT_FALSE(result->add_bos);
  EXPECT_EQ(result->bos_token_id, 0);
  EXPECT_EQ(result->eos_token_ids, std::vector<int32_t>{1});
  EXPECT_EQ(result->tokenizer_config["eos_token"], "a");
}

TEST(GgufTokenizer, PutsBosAndEosAroundTextWhereTheFileSaysSo) {
  const auto result = convert(bpe()
                                  .boolean("tokenizer.ggml.add_bos_token", true)
                                  .boolean("tokenizer.ggml.add_eos_token", true));
  ASSERT_TRUE(result.ok());
  const json post = json::parse(result->tokenizer_json)["post_processor"];
  EXPECT_EQ(post["type"], "TemplateProcessing");
  ASSERT_EQ(post["single"].size(), 3u);
  EXPECT_EQ(post["single"][0]["SpecialToken"]["id"], "<|im_start|>");
  EXPECT_EQ(post["single"][2]["SpecialToken"]["id"], "a");
  EXPECT_EQ(post["pair"].size(), 6u);
  EXPECT_EQ(post["special_tokens"]["a"]["ids"], json::array({1}));
  EXPECT_TRUE(result->add_bos);
}

TEST(GgufTokenizer, Llama3IgnoresMergesAndAddsBos) {
  const auto result = convert(bpe("llama-bpe"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(json::parse(result->tokenizer_json)["model"]["ignore_merges"], true);
  EXPECT_TRUE(result->add_bos);
}

TEST(GgufTokenizer, SentencePieceMergesFollowTheScores) {
  const auto result = convert(spm());
  ASSERT_TRUE(result.ok()) << result.error().message;
  const json tokenizer = json::parse(result->tokenizer_json);
  EXPECT_EQ(tokenizer["model"]["merges"],
            json::parse(R"([["ab","c"],["a","bc"],["a","b"],["b","c"]])"));
  EXPECT_EQ(tokenizer["model"]["byte_fallback"], true);
  EXPECT_EQ(tokenizer["model"]["unk_token"], "<unk>");
  EXPECT_EQ(tokenizer["normalizer"]["normalizers"][0]["type"], "Prepend");
  EXPECT_EQ(tokenizer["added_tokens"].size(), 3u);
  EXPECT_TRUE(result->add_bos);
  const auto bare = convert(spm().boolean("tokenizer.ggml.add_space_prefix", false));
  const json other = json::parse(bare.value().tokenizer_json);
  EXPECT_EQ(other["normalizer"]["normalizers"].size(), 1u);
  EXPECT_EQ(other["decoder"]["decoders"].size(), 3u) << "nothing to strip";
}

TEST(GgufTokenizer, StopTokensAndTemplates) {
  const auto result = convert(bpe()
                                  .u32("tokenizer.ggml.eot_token_id", 4)
                                  .u32("tokenizer.ggml.eom_token_id", 3)
                                  .string("tokenizer.chat_template", "T")
                                  .string("tokenizer.chat_template.tool_use", "U"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->eos_token_ids, (std::vector<int32_t>{1, 3, 4}));
  EXPECT_EQ(result->chat_template, "T");
  EXPECT_EQ(result->tool_chat_template, "U");
}

TEST(GgufTokenizer, NamesWhatItCannotRead) {
  expect_error(bpe("new-model"), "new-model");
  expect_error(
      GgufBuilder().string("tokenizer.ggml.model", "bert").strings("tokenizer.ggml.tokens", {"a"}),
      "bert");
  expect_error(GgufBuilder().string("tokenizer.ggml.model", "gpt2"), "tokenizer.ggml.tokens");
  expect_error(bpe().u32("tokenizer.ggml.eot_token_id", 6), "eot_token_id");
  const auto with = [](std::vector<std::string> tokens, std::vector<std::string> merges) {
    return GgufBuilder()
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", tokens)
        .strings("tokenizer.ggml.merges", merges);
  };
  expect_error(with({"a", "a"}, {}), "tokens 0 and 1");
  expect_error(with({"a", "\xc3"}, {}), "UTF-8");
  expect_error(with({"a"}, {"ab"}), "merge 0");
  expect_error(with({"a"}, {"a "}), "merge 0");
  expect_error(with({"a"}, {}).i32s("tokenizer.ggml.token_type", {1, 1}), "token types");
}

TEST(JsonWriter, EscapesAndRefusesBadUtf8) {
  for (const std::string text : {"", "a\"b\\c\n\x01", "č🚀\u2581"}) {
    std::string out;
    ASSERT_TRUE(append_json_string(text, out));
    EXPECT_EQ(json::parse(out), json(text));
  }
  for (const std::string text :
       {"\x80", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xe2\x82"}) {
    std::string out = "x";
    EXPECT_FALSE(append_json_string(text, out));
    EXPECT_EQ(out, "x");
  }
}

TEST(JsonText, LimitsDepthAndDuplicateKeys) {
  EXPECT_TRUE(parse_json(R"({"a":{"b":[1]}})", "x", 3).ok());
  EXPECT_FALSE(parse_json(R"({"a":{"b":[1]}})", "x", 2).ok());
  EXPECT_FALSE(parse_json(R"({"a":1,"a":2})", "x").ok());
  EXPECT_TRUE(parse_json(R"({"a":{"b":1},"b":{"b":1}})", "x").ok());
  EXPECT_FALSE(parse_json(std::string(1 << 20, '['), "x").ok());
}

}  // namespace
}  // namespace sluice::loader
