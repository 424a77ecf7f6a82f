#include "cache/sequence_state.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::cache {
namespace {

TEST(PagePool, RefusesMoreThanItHasAndNamesBothNumbers) {
  PagePool pool(3);
  ASSERT_TRUE(pool.allocate(2).ok());
  auto refused = pool.allocate(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_NE(refused.error().message.find("1 of 3 pages free"), std::string::npos);
  EXPECT_NE(refused.error().message.find("2 more"), std::string::npos);
  EXPECT_EQ(pool.free_pages(), 1);
}

TEST(PagePool, SharedPageIsFreeAtTheLastRelease) {
  PagePool pool(2);
  auto pages = pool.allocate(1).value();
  pool.add_reference(pages[0]);
  pool.release(pages[0]);
  EXPECT_EQ(pool.free_pages(), 1);
  pool.release(pages[0]);
  EXPECT_EQ(pool.free_pages(), 2);
  EXPECT_THROW(pool.release(pages[0]), Exception);
  EXPECT_THROW(pool.add_reference(pages[0]), Exception);
}

TEST(SequenceState, TakesPagesAtBoundariesAndGivesThemBack) {
  PagePool pool(4);
  {
    SequenceState sequence(pool);
    EXPECT_EQ(sequence.missing_pages(64), 1);
    EXPECT_EQ(sequence.missing_pages(65), 2);
    ASSERT_TRUE(sequence.begin_pass(64).ok());
    ASSERT_TRUE(sequence.commit(64).ok());
    EXPECT_EQ(sequence.length(), 64);
    EXPECT_EQ(sequence.pages().size(), 1u);
    ASSERT_TRUE(sequence.begin_pass(1).ok());
    EXPECT_EQ(sequence.pages().size(), 2u);
    EXPECT_EQ(pool.free_pages(), 2);
    ASSERT_TRUE(sequence.commit(1).ok());
  }
  EXPECT_EQ(pool.free_pages(), 4);
}

TEST(SequenceState, RejectedPositionsGiveTheirPagesBack) {
  PagePool pool(4);
  SequenceState sequence(pool);
  ASSERT_TRUE(sequence.begin_pass(60).ok());
  ASSERT_TRUE(sequence.commit(60).ok());
  ASSERT_TRUE(sequence.begin_pass(8).ok());
  EXPECT_EQ(pool.free_pages(), 2);
  ASSERT_TRUE(sequence.commit(4).ok());
  EXPECT_EQ(sequence.length(), 64);
  EXPECT_EQ(pool.free_pages(), 3);
  ASSERT_TRUE(sequence.begin_pass(3).ok());
  ASSERT_TRUE(sequence.commit(0).ok());
  EXPECT_EQ(sequence.length(), 64);
  EXPECT_EQ(pool.free_pages(), 3);
}

TEST(SequenceState, WrongCallsNameTheNumbersAndChangeNothing) {
  PagePool pool(2);
  SequenceState sequence(pool);
  EXPECT_FALSE(sequence.commit(1).ok());
  EXPECT_FALSE(sequence.begin_pass(0).ok());
  EXPECT_EQ(sequence.begin_pass(200).error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(pool.free_pages(), 2);
  ASSERT_TRUE(sequence.begin_pass(5).ok());
  EXPECT_FALSE(sequence.begin_pass(1).ok());
  auto too_many = sequence.commit(6);
  ASSERT_FALSE(too_many.ok());
  EXPECT_NE(too_many.error().message.find("6"), std::string::npos);
  EXPECT_NE(too_many.error().message.find("5"), std::string::npos);
  EXPECT_FALSE(sequence.commit(-1).ok());
  EXPECT_EQ(sequence.pending(), 5);
  ASSERT_TRUE(sequence.commit(5).ok());
}

}  // namespace
}  // namespace sluice::cache
