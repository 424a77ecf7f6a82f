#include "kernels/activation_plan.h"

#include <gmock/gmock.h>

namespace sluice::kernels {
namespace {

using ::testing::HasSubstr;

constexpr ModuleKind kKinds[] = {
    ModuleKind::kQkv, ModuleKind::kOut, ModuleKind::kGateUp, ModuleKind::kDown, ModuleKind::kHead};

TEST(ActivationPlan, OneChoiceForAllKinds) {
  for (const auto kind : kKinds) {
    EXPECT_EQ(ActivationPlan::parse("int8").value().of(kind), Activations::kInt8);
    EXPECT_EQ(ActivationPlan::parse("f32").value().of(kind), Activations::kFloat32);
    EXPECT_EQ(ActivationPlan::parse("default").value().of(kind), ActivationPlan().of(kind));
  }
}

TEST(ActivationPlan, ExceptionsByKind) {
  const auto plan = ActivationPlan::parse("int8,head=f32,down=f32").value();
  EXPECT_EQ(plan.of(ModuleKind::kHead), Activations::kFloat32);
  EXPECT_EQ(plan.of(ModuleKind::kDown), Activations::kFloat32);
  EXPECT_EQ(plan.of(ModuleKind::kQkv), Activations::kInt8);
}

TEST(ActivationPlan, RoutersAndGatesStayInFloat) {
  EXPECT_EQ(ActivationPlan::parse("int8").value().of(ModuleKind::kOther), Activations::kFloat32);
}

TEST(ActivationPlan, ItsDescriptionGivesItBack) {
  for (const char* text :
       {"int8", "f32", "int8,head=f32", "int8,out=f32,down=f32", "f32,qkv=int8"}) {
    const auto plan = ActivationPlan::parse(text).value();
    EXPECT_EQ(plan.describe(), text);
    EXPECT_EQ(ActivationPlan::parse(plan.describe()).value(), plan);
  }
}

TEST(ActivationPlan, ErrorsNameWhatIsWrong) {
  for (const char* text : {"", "int4", "int8,tail=f32", "int8,head", "int8,head=q8", "int8,"}) {
    EXPECT_FALSE(ActivationPlan::parse(text).ok()) << text;
  }
  EXPECT_THAT(ActivationPlan::parse("int4").error().message, HasSubstr("'int4'"));
  EXPECT_THAT(ActivationPlan::parse("int8,tail=f32").error().message, HasSubstr("'tail'"));
  EXPECT_THAT(ActivationPlan::parse("int8,head=q8").error().message, HasSubstr("'head=q8'"));
}

TEST(ModuleKinds, ByTheNameOfTheProjection) {
  EXPECT_EQ(module_kind("model.layers.3.self_attn.q_proj", false), ModuleKind::kQkv);
  EXPECT_EQ(module_kind("model.layers.*.self_attn.o_proj.weight", false), ModuleKind::kOut);
  EXPECT_EQ(module_kind("model.layers.3.mlp.up_proj", false), ModuleKind::kGateUp);
  EXPECT_EQ(module_kind("model.layers.3.mlp.down_proj", false), ModuleKind::kDown);
  EXPECT_EQ(module_kind("lm_head", false), ModuleKind::kHead);
  EXPECT_EQ(module_kind("model.embed_tokens", true), ModuleKind::kHead);
  EXPECT_EQ(module_kind("model.embed_tokens", false), ModuleKind::kOther);
  EXPECT_EQ(module_kind("model.layers.3.linear_attn.in_proj_a", true), ModuleKind::kOther);
  EXPECT_EQ(module_kind("model.layers.3.mlp.gate", false), ModuleKind::kOther);
}

}  // namespace
}  // namespace sluice::kernels
