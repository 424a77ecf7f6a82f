#include "text/bridge.h"

#include <gtest/gtest.h>

namespace sluice::text {
namespace {

TEST(Bridge, APanicIsAStatusWithItsText) {
  BridgeBytes err;
  EXPECT_EQ(sluice_test_panic(err.out()), SLUICE_PANIC);
  EXPECT_NE(err.view().find("asked for by a test"), std::string_view::npos) << err.view();
  const Status status = bridge_status(SLUICE_PANIC, err, ErrorCode::kIo);
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_EQ(sluice_test_panic(nullptr), SLUICE_PANIC);
}

TEST(Bridge, NullHandlesAndPointersAreBadArguments) {
  BridgeBytes err;
  BridgeBytes out;
  BridgeIds ids;
  EXPECT_EQ(sluice_tok_encode(nullptr, to_bridge("x"), 0, ids.out(), err.out()),
            SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(err.view(), "the tokenizer handle is null");
  EXPECT_EQ(sluice_stream_step(nullptr, 0, out.out(), err.out()), SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(sluice_template_render(nullptr, nullptr, out.out(), err.out()), SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(sluice_matcher_mask(nullptr, nullptr, 0, err.out()), SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(sluice_matcher_rollback(nullptr, 1, nullptr), SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(sluice_tok_new(to_bridge("{}"), nullptr, err.out()), SLUICE_ERROR);
  EXPECT_EQ(sluice_tok_vocab_size(nullptr), 0u);
  sluice_tok_free(nullptr);
  sluice_progress_free(nullptr);
  sluice_bytes_free(nullptr);
}

TEST(Bridge, TextThatIsNoUtf8NamesTheByte) {
  BridgeBytes err;
  sluice_template* tmpl = nullptr;
  const int32_t status =
      sluice_template_new(to_bridge("ab\xff"), to_bridge(""), to_bridge(""), &tmpl, err.out());
  EXPECT_EQ(status, SLUICE_BAD_ARGUMENT);
  EXPECT_EQ(err.view(), "the chat template is not valid UTF-8 at byte 2");
  EXPECT_EQ(tmpl, nullptr);
}

TEST(Bridge, AProgressBarWithoutATerminalDrawsNothingAndRefusesUnknownUnits) {
  BridgeBytes err;
  sluice_progress* bar = nullptr;
  ASSERT_EQ(sluice_progress_new(10, SLUICE_PROGRESS_BYTES, to_bridge("x"), &bar, err.out()),
            SLUICE_OK);
  EXPECT_EQ(sluice_progress_set(bar, 5, err.out()), SLUICE_OK);
  EXPECT_EQ(sluice_progress_message(bar, to_bridge("y"), err.out()), SLUICE_OK);
  sluice_progress_free(bar);
  EXPECT_EQ(sluice_progress_new(10, 7, to_bridge("x"), &bar, err.out()), SLUICE_BAD_ARGUMENT);
}

}  // namespace
}  // namespace sluice::text
