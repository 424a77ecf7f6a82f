#include "loader/checkpoint.h"

#include <gtest/gtest.h>

#include "loader/materialize.h"
#include "loader/test_files.h"

namespace sluice::loader {
namespace {

using testing::GgufBuilder;
using testing::raw;
using testing::raw_all;
using testing::SafetensorsBuilder;
using testing::TempFolder;
using testing::tiny_llama;

constexpr const char* kConfig = R"({"model_type":"llama","eos_token_id":[7,3],"bos_token_id":1})";

std::string error_of(const std::filesystem::path& path, const OpenOptions& options = {}) {
  const auto result = open_checkpoint(path, options);
  return result.ok() ? "" : result.error().message;
}

void expect_error(const std::filesystem::path& path, const std::string& part) {
  const std::string message = error_of(path, {.progress = {}, .tokenizer = false});
  EXPECT_NE(message.find(part), std::string::npos) << "got: " << message;
}

Result<Checkpoint> open_weights(const std::filesystem::path& path) {
  return open_checkpoint(path, {.progress = {}, .tokenizer = false});
}

std::vector<float> floats(const mx::array& array) {
  return std::vector<float>(array.data<float>(), array.data<float>() + array.size());
}

TEST(MlxFolder, GivesDenseAndQuantizedTensors) {
  TempFolder folder;
  folder.write("config.json",
               R"({"model_type":"llama","quantization":{"bits":4,"group_size":64,
                   "b":{"bits":8,"group_size":32}}})");
  const auto halves = [](int64_t count) { return std::string(count * 2, '\0'); };
  folder.write("model.safetensors",
               SafetensorsBuilder()
                   .f32("norm.weight", {4}, 2)
                   .f32("d.weight", {2, 64})
                   .add("a.weight", "U32", {2, 8}, std::string(64, 1))
                   .add("a.scales", "F16", {2, 1}, halves(2))
                   .add("a.biases", "F16", {2, 1}, halves(2))
                   .add("b.weight", "U32", {3, 16}, std::string(192, 1))
                   .add("b.scales", "BF16", {3, 2}, halves(6))
                   .add("b.biases", "BF16", {3, 2}, halves(6))
                   .build());
  auto checkpoint = open_weights(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  auto& weights = checkpoint->weights;
  EXPECT_EQ(checkpoint->format, "mlx-safetensors");

  const auto list = weights.list();
  ASSERT_EQ(list.size(), 4u) << "an affine module is one entry";
  EXPECT_EQ(list[0].name, "a.weight");
  EXPECT_EQ(list[0].kind, "affine 4-bit group 64");
  EXPECT_EQ(list[0].shape, (std::vector<int64_t>{2, 64}));
  EXPECT_EQ(list[0].bytes, 64u + 4 + 4);
  EXPECT_EQ(list[1].kind, "affine 8-bit group 32");

  const auto norm = weights.take("norm.weight", {4});
  ASSERT_TRUE(norm.ok());
  EXPECT_EQ(floats(*norm), std::vector<float>(4, 2.0f));
  EXPECT_NE(weights.finish().error().message.find("a.weight"), std::string::npos);

  const auto a = weights.take_matrix("a", 2, 64);
  ASSERT_TRUE(a.ok()) << a.error().message;
  const auto& affine = std::get<AffineMatrix>(*a);
  EXPECT_EQ(affine.bits, 4);
  EXPECT_EQ(affine.group_size, 64);
  EXPECT_EQ(affine.weight.dtype(), mx::uint32);
  EXPECT_EQ(affine.scales.dtype(), mx::float16);
  const auto b = weights.take_matrix("b", 3, 64);
  ASSERT_TRUE(b.ok()) << b.error().message;
  EXPECT_EQ(std::get<AffineMatrix>(*b).bits, 8);
  const auto d = weights.take_matrix("d", 2, 64);
  ASSERT_TRUE(d.ok());
  EXPECT_TRUE(std::holds_alternative<mx::array>(*d));
  EXPECT_TRUE(weights.finish().ok());
}

TEST(MlxFolder, ArraysShareTheMappingAndOutliveTheCheckpoint) {
  if (!shares_mapping()) GTEST_SKIP() << "this backend copies weights to its own memory";
  TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", SafetensorsBuilder().f32("x", {3}, 5).build());
  std::optional<mx::array> first;
  {
    auto checkpoint = open_weights(folder.path());
    ASSERT_TRUE(checkpoint.ok());
    first = checkpoint->weights.take("x", {3}).value();
  }
  EXPECT_EQ(floats(*first), std::vector<float>(3, 5.0f));
  auto sum = mx::add(*first, *first);
  mx::eval(sum);
  EXPECT_EQ(floats(sum), std::vector<float>(3, 10.0f));
}

TEST(MlxFolder, CopiesWhatIsMisaligned) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  SafetensorsBuilder file;
  file.add("a", "U8", {1}, "z").f32("x", {3}, 5);
  folder.write("model.safetensors", file.build());
  auto checkpoint = open_weights(folder.path());
  ASSERT_TRUE(checkpoint.ok());
  const auto x = checkpoint->weights.take("x", {3});
  ASSERT_TRUE(x.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(x->data<float>()) % alignof(float), 0u);
  EXPECT_EQ(floats(*x), std::vector<float>(3, 5.0f));
}

TEST(WeightMap, ErrorsNameTensorFileAndShapes) {
  TempFolder folder;
  folder.write("config.json",
               R"({"model_type":"llama","quantization":{"bits":4,"group_size":32,"q":true}})");
  folder.write("model.safetensors",
               SafetensorsBuilder()
                   .f32("x", {2, 3})
                   .f32("q.weight", {2, 64})
                   .add("i", "I32", {1}, raw<int32_t>(1))
                   .add("f8", "F8_E4M3", {1}, "x")
                   .add("w.weight", "U32", {2, 8}, std::string(64, 1))
                   .add("w.scales", "F16", {2, 2}, std::string(8, 1))
                   .build());
  auto checkpoint = open_weights(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  auto& weights = checkpoint->weights;
  const auto check = [](const auto& result, ErrorCode code, std::vector<std::string> parts) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, code);
    for (const auto& part : parts) {
      EXPECT_NE(result.error().message.find(part), std::string::npos)
          << part << " not in: " << result.error().message;
    }
  };
  check(weights.take("y", {1}), ErrorCode::kNotFound, {"y", "model.safetensors", "missing"});
  check(weights.take("x", {3, 2}),
        ErrorCode::kCorruptFile,
        {"x", "model.safetensors", "[2, 3]", "[3, 2]"});
  check(weights.take("i", {1}), ErrorCode::kUnsupported, {"int32"});
  check(weights.take("f8", {1}), ErrorCode::kUnsupported, {"F8_E4M3"});
  check(weights.take_matrix("q", 2, 64), ErrorCode::kCorruptFile, {"q.scales"});
  check(weights.take_matrix("w", 2, 64), ErrorCode::kNotFound, {"w.biases"});
  check(weights.take_matrix("w", 2, 128), ErrorCode::kCorruptFile, {"[2, 8]", "[2, 16]", "4 bits"});
  check(weights.take_matrix("w", 2, 48), ErrorCode::kCorruptFile, {"48", "32"});
  ASSERT_TRUE(weights.take("x", {2, 3}).ok());
  check(weights.take("x", {2, 3}), ErrorCode::kInvalidArgument, {"twice"});
  EXPECT_TRUE(weights.ignore("i"));
  EXPECT_FALSE(weights.ignore("nothing"));
  EXPECT_EQ(weights.ignore_if([](const std::string& name) { return name[0] == 'w'; }), 2);
  check(weights.finish(), ErrorCode::kUnsupported, {"2 tensors", "f8", "q.weight"});
  weights.ignore("f8");
  weights.ignore("q.weight");
  EXPECT_TRUE(weights.finish().ok());
}

TEST(WeightMap, ReportsProgressUpToTheTotal) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("model.safetensors", SafetensorsBuilder().f32("a", {3}).f32("b", {5}).build());
  std::vector<uint64_t> done;
  uint64_t total = 0;
  auto checkpoint = open_checkpoint(folder.path(),
                                    {.progress =
                                         [&](uint64_t now, uint64_t all) {
                                           done.push_back(now);
                                           total = all;
                                         },
                                     .tokenizer = false});
  ASSERT_TRUE(checkpoint.ok());
  ASSERT_TRUE(checkpoint->weights.take("b", {5}).ok());
  checkpoint->weights.ignore("a");
  EXPECT_EQ(done, (std::vector<uint64_t>{20, 32}));
  EXPECT_EQ(total, 32u);
}

class ShardedFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", kConfig);
    folder_.write("model-1.safetensors", SafetensorsBuilder().f32("a", {1}, 1).build());
    folder_.write("model-2.safetensors", SafetensorsBuilder().f32("b", {1}, 2).build());
  }
  void index(const std::string& weight_map) {
    folder_.write("model.safetensors.index.json", R"({"weight_map":)" + weight_map + "}");
  }
  TempFolder folder_;
};

TEST_F(ShardedFolder, ReadsAllShards) {
  index(R"({"a":"model-1.safetensors","b":"model-2.safetensors"})");
  auto checkpoint = open_weights(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(floats(checkpoint->weights.take("b", {1}).value())[0], 2);
  std::filesystem::remove(folder_.path() / "model.safetensors.index.json");
  EXPECT_TRUE(open_weights(folder_.path()).ok()) << "the index is no must";
}

TEST_F(ShardedFolder, RefusesAnIndexThatDoesNotFit) {
  index(R"({"a":"model-2.safetensors","b":"model-2.safetensors"})");
  expect_error(folder_.path(), "model-2.safetensors: tensor a is missing");
  index(R"({"a":"model-1.safetensors","b":"model-1.safetensors"})");
  expect_error(folder_.path(), "tensor b is missing");
  index(R"({"a":"model-1.safetensors"})");
  auto checkpoint = open_weights(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << "a shard that the index does not name is not opened";
  EXPECT_FALSE(checkpoint->weights.contains("b"));
  index(R"({"a":"model-1.safetensors","b":"model-3.safetensors"})");
  expect_error(folder_.path(), "model-3.safetensors");
}

TEST_F(ShardedFolder, RefusesAnIndexThatLeadsAstray) {
  index(R"({"a":"model.safetensors.index.json"})");  // itself
  expect_error(folder_.path(), "model.safetensors.index.json");
  index(R"({"a":"../model-1.safetensors"})");
  expect_error(folder_.path(), "same folder");
  index(R"({"a":7})");
  expect_error(folder_.path(), "same folder");
  index(R"([1])");
  expect_error(folder_.path(), "weight_map");
  std::filesystem::create_directory(folder_.path() / "loop.safetensors");
  index(R"({"a":"loop.safetensors"})");
  expect_error(folder_.path(), "regular file");
  std::filesystem::create_symlink("ring.safetensors", folder_.path() / "ring.safetensors");
  index(R"({"a":"ring.safetensors"})");
  expect_error(folder_.path(), "ring.safetensors");
}

TEST_F(ShardedFolder, RefusesATensorInTwoShards) {
  folder_.write("model-2.safetensors", SafetensorsBuilder().f32("a", {1}).build());
  expect_error(folder_.path(), "another shard");
}

TEST(MlxFolder, ReadsTokenizerFilesAndSpecialTokens) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  folder.write("generation_config.json", R"({"eos_token_id":9})");
  folder.write("model.safetensors", SafetensorsBuilder().f32("a", {1}).build());
  EXPECT_NE(error_of(folder.path()).find("tokenizer.json"), std::string::npos);
  folder.write("tokenizer.json",
               R"({"added_tokens":[{"id":4,"content":"<s>"},{"id":5,"content":"</s>"}],)"
               R"("post_processor":{"special_tokens":{"<s>":{"id":"<s>"}}},"model":{}})");
  folder.write("tokenizer_config.json",
               R"({"eos_token":{"content":"</s>"},"bos_token":"<s>","chat_template":
                   [{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]})");
  auto checkpoint = open_checkpoint(folder.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->eos_token_ids, (std::vector<int32_t>{3, 5, 7, 9}));
  EXPECT_EQ(checkpoint->bos_token_id, 4);
  EXPECT_TRUE(checkpoint->add_bos);
  EXPECT_EQ(checkpoint->chat_template, "D");
  EXPECT_EQ(checkpoint->tool_chat_template, "T");
  folder.write("chat_template.jinja", "J");
  EXPECT_EQ(open_checkpoint(folder.path())->chat_template, "J");
  folder.write("generation_config.json", R"({"eos_token_id":"x"})");
  EXPECT_NE(error_of(folder.path()).find("generation_config.json"), std::string::npos);
  folder.write("generation_config.json", "{");
  EXPECT_NE(error_of(folder.path()).find("generation_config.json"), std::string::npos);
}

TEST(Checkpoint, SaysWhatIsMissing) {
  TempFolder folder;
  expect_error(folder.path() / "nothing", "no such file");
  expect_error(folder.path(), "neither config.json");
  folder.write("config.json", "{}");
  expect_error(folder.path(), "model_type");
  folder.write("config.json", kConfig);
  expect_error(folder.path(), "no model*.safetensors");
  expect_error(folder.write("x.safetensors", ""), "give the folder");
  expect_error(folder.write("x.gguf", "no model"), "x.gguf");
}

TEST(GgufCheckpoint, OpensAFileOrItsFolder) {
  TempFolder folder;
  const auto file = folder.write("m.gguf", tiny_llama().build());
  for (const auto& path : {file, folder.path()}) {
    auto checkpoint = open_checkpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->format, "gguf");
    EXPECT_EQ(checkpoint->path, path);
    EXPECT_EQ(checkpoint->file_bytes, std::filesystem::file_size(file));
    EXPECT_EQ(checkpoint->eos_token_ids, (std::vector<int32_t>{0, 4}));
    EXPECT_EQ(checkpoint->config["eos_token_id"], (std::vector<int32_t>{0, 4}));
    EXPECT_TRUE(checkpoint->weights.contains("model.layers.0.self_attn.q_proj.weight"));
  }
  folder.write("n.gguf", "");
  expect_error(folder.path(), "several");
}

TEST(GgufCheckpoint, TakesBlocksAsAffineMatricesAndUndoesTheRopeOrder) {
  TempFolder folder;
  auto metadata = testing::tiny_llama_metadata();
  std::string q;
  for (int row = 0; row < 64; ++row) {
    for (int block = 0; block < 2; ++block) q += raw<uint16_t>(0x3c00) + std::string(32, char(row));
  }
  std::vector<float> k(32 * 64);
  for (size_t i = 0; i < k.size(); ++i) k[i] = float(i / 64);
  metadata.f32_tensor("token_embd.weight", {64, 5})
      .tensor("blk.0.attn_q.weight", {64, 64}, 8, q)
      .tensor("blk.0.attn_k.weight", {64, 32}, 0, raw_all(k));
  auto checkpoint = open_weights(folder.write("m.gguf", metadata.build()));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  const auto matrix = checkpoint->weights.take_matrix("model.layers.0.self_attn.q_proj", 64, 64);
  ASSERT_TRUE(matrix.ok()) << matrix.error().message;
  const auto& affine = std::get<AffineMatrix>(*matrix);
  auto values =
      mx::dequantize(affine.weight, affine.scales, affine.biases, affine.group_size, affine.bits);
  values = mx::astype(values, mx::float32);
  mx::eval(values);
  const auto dense = checkpoint->weights.take_matrix("model.layers.0.self_attn.k_proj", 32, 64);
  ASSERT_TRUE(dense.ok());
  const auto q_rows = floats(values), k_rows = floats(std::get<mx::array>(*dense));
  for (int row = 0; row < 32; ++row) {  // both have heads of 32: 0, 2, 4, ... 1, 3, 5, ...
    const int source = row < 16 ? 2 * row : 2 * (row - 16) + 1;
    EXPECT_EQ(q_rows[row * 64], float(source));
    EXPECT_EQ(q_rows[(32 + row) * 64], float(32 + source));
    EXPECT_EQ(k_rows[row * 64], float(source));
  }
}

TEST(GgufCheckpoint, RefusesTwoTensorsOfOneName) {
  TempFolder folder;
  const auto file = tiny_llama().f32_tensor("model.norm.weight", {64}).build();
  expect_error(folder.write("m.gguf", file), "two tensors for model.norm.weight");
}

TEST(GgufCheckpoint, NamesForeignTensorsAtTheEnd) {
  TempFolder folder;
  const auto file = tiny_llama().f32_tensor("blk.0.ssm_conv.weight", {4}).build();
  auto checkpoint = open_weights(folder.write("m.gguf", file));
  ASSERT_TRUE(checkpoint.ok());
  checkpoint->weights.ignore_if([](const std::string& name) { return name.starts_with("model."); });
  EXPECT_NE(checkpoint->weights.finish().error().message.find("blk.0.ssm_conv.weight"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::loader
