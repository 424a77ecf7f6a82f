// GGUF: container, config and tokenizer.
#include "fuzz_target.h"
#include "loader/gguf_config.h"
#include "loader/gguf_file.h"
#include "loader/gguf_tokenizer.h"
#include "loader/test_files.h"

namespace loader = sluice::loader;

namespace {

// Reads every byte that a tensor claims to have.
unsigned touch(const loader::GgufTensor& tensor) {
  unsigned sum = 0;
  for (const auto byte : tensor.data) sum += std::to_integer<unsigned>(byte);
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = loader::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
  if (!file.ok()) return 0;
  volatile unsigned sum = 0;
  for (const auto& tensor : file->tensors) sum = sum + touch(tensor);
  if (const auto config = loader::config_from_gguf(*file); config.ok()) {
    for (const auto& tensor : file->tensors) {
      const auto role = loader::gguf_tensor_role(tensor, "llama", *config);
      if (role.ok()) sum = sum + role->name.size();
    }
  }
  if (const auto tokenizer = loader::tokenizer_from_gguf(file->metadata); tokenizer.ok()) {
    // What comes out must be JSON.
    sum = sum + nlohmann::json::parse(tokenizer->tokenizer_json).size();
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using loader::testing::GgufBuilder;
  auto sentencepiece = GgufBuilder()
                           .string("general.architecture", "qwen3")
                           .string("tokenizer.ggml.model", "llama")
                           .strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "a", "b", "ab"})
                           .i32s("tokenizer.ggml.token_type", {2, 3, 1, 1, 1})
                           .f32s("tokenizer.ggml.scores", {0, 0, -3, -2, -1})
                           .u32("tokenizer.ggml.bos_token_id", 1)
                           .u32("tokenizer.ggml.unknown_token_id", 0);
  auto blocks = loader::testing::tiny_llama_metadata("qwen2");
  blocks.string("qwen2.rope.scaling.type", "yarn")
      .f32("qwen2.rope.scaling.factor", 4)
      .u32("qwen2.rope.scaling.original_context_length", 64)
      .boolean("tokenizer.ggml.add_bos_token", true)
      .tensor("token_embd.weight", {64, 5}, 8, std::string(340, 1))
      .tensor("blk.0.attn_q.weight", {64, 2}, 3, std::string(80, 1))
      .f32_tensor("rope_freqs.weight", {16});
  return {loader::testing::tiny_llama_metadata().f32_tensor("token_embd.weight", {64, 5}).build(),
          blocks.build(),
          sentencepiece.build()};
}
