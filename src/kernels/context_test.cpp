#include "kernels/context.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::kernels {
namespace {

TEST(KernelContext, NamesParseBack) {
  for (Backend backend : {Backend::kReference, Backend::kCpu}) {
    EXPECT_EQ(parse_backend(backend_name(backend)).value(), backend);
  }
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni}) {
    EXPECT_EQ(parse_isa(isa_name(isa)).value(), isa);
  }
  EXPECT_STREQ(op_name(Op::kAttention), "attention");
}

TEST(KernelContext, UnknownNamesAreErrorsThatListTheKnownOnes) {
  const auto backend = parse_backend("cuda");
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().message, "unknown kernel backend 'cuda'; known are: reference, cpu");
  const auto isa = parse_isa("");
  ASSERT_FALSE(isa.ok());
  EXPECT_NE(isa.error().message.find("generic, avx2, avxvnni, avx512, avx512vnni"),
            std::string::npos);
}

TEST(KernelContext, AVariantIsAcceptedExactlyIfItIsSupported) {
  const auto supported = supported_isas();
  EXPECT_EQ(supported.front(), Isa::kGeneric);
  EXPECT_EQ(best_isa(), supported.back());
  for (Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAvx512Vnni}) {
    ContextOptions options;
    options.isa = isa;
    const auto context = Context::create(options);
    if (std::find(supported.begin(), supported.end(), isa) != supported.end()) {
      ASSERT_TRUE(context.ok());
      EXPECT_EQ(context.value()->isa(), isa);
    } else {
      ASSERT_FALSE(context.ok());
      EXPECT_EQ(context.error().code, ErrorCode::kUnsupported);
      EXPECT_NE(context.error().message.find(isa_name(isa)), std::string::npos);
    }
  }
}

TEST(KernelContext, ThreadCountsAreChecked) {
  ContextOptions options;
  options.threads = -1;
  EXPECT_FALSE(Context::create(options).ok());
  options.threads = 3;
  EXPECT_EQ(Context::create(options).value()->pool().size(), 3);
  options.threads = 0;
  EXPECT_EQ(Context::create(options).value()->pool().size(), ThreadPool::default_size());
}

TEST(KernelContext, CompareKeepsANotANumber) {
  const auto context = std::move(Context::create({})).value();
  const mx::array zero = mx::zeros({2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  context->compare(Op::kRope, mx::array({nan, 0.0f}), zero);
  context->compare(Op::kRope, zero, zero);
  EXPECT_TRUE(std::isnan(context->check_records().at(Op::kRope).max_abs_error));
  EXPECT_THROW(context->compare(Op::kRope, zero, mx::zeros({3})), Exception);
}

}  // namespace
}  // namespace sluice::kernels
