#include "engine/inspect.h"

#include <gmock/gmock.h>

#include "engine/test_model.h"

namespace sluice::engine {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(DescribeModel, SumsUpTheDefaultModel) {
  auto model = describe_model(test_model_path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->family, "llama");
  EXPECT_TRUE(model->supported);
  EXPECT_EQ(model->num_layers, 30);
  EXPECT_EQ(model->attention_layers, 30);
  EXPECT_EQ(model->cache_bytes_per_sequence, 0u);
  EXPECT_EQ(model->heads, 9);
  EXPECT_EQ(model->kv_heads, 3);
  EXPECT_EQ(model->head_dim, 64);
  EXPECT_EQ(model->context_tokens, 8192);
  EXPECT_EQ(model->parameters, 134515008u);  // transformers' count for this checkpoint
  EXPECT_EQ(model->cache_bytes_per_token, 2u * 4 * 30 * 3 * 64);
  uint64_t bytes = 0;
  int layers_of_up_proj = 0;
  for (const auto& module : model->modules) {
    bytes += module.bytes;
    if (module.name == "model.layers.*.mlp.up_proj.weight") layers_of_up_proj += module.count;
  }
  EXPECT_EQ(layers_of_up_proj, 30);
  // A tied head: every byte is read for a token.
  EXPECT_EQ(bytes, model->weight_bytes_per_token);
  EXPECT_LE(bytes, model->file_bytes);
}

TEST(DescribeModel, SaysWhatIsMissing) {
  auto model = describe_model("/nowhere/at-all");
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.error().message, HasSubstr("/nowhere/at-all"));
}

TEST(DescribeMachine, KnowsItsLibraryAndKernels) {
  const auto machine = describe_machine();
  EXPECT_THAT(machine.mlx_library, HasSubstr("libmlx"));
  EXPECT_FALSE(machine.mlx_version.empty());
  EXPECT_GE(machine.threads, 1);
  EXPECT_THAT(machine.isas, Contains(machine.isa));
  EXPECT_GE(machine.ops.size(), 6u);
  EXPECT_THAT(machine.families, Contains("llama"));
}

}  // namespace
}  // namespace sluice::engine
