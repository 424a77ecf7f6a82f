#include "chat/event_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/result.h"

namespace sluice::chat {
namespace {

using std::chrono::milliseconds;

TextDelta text(std::string s) {
  return {Channel::kContent, std::move(s), {}};
}

std::string text_of(const std::optional<ChatEvent>& event) {
  return std::get<TextDelta>(event.value()).text;
}

FailureKind failure_of(const std::optional<ChatEvent>& event) {
  return std::get<Failure>(event.value()).kind;
}

TEST(EventChannel, DeliversInOrderAndEndsOnce) {
  EventChannel channel(4);
  EXPECT_FALSE(channel.poll());
  EXPECT_TRUE(channel.push(text("a")));
  EXPECT_TRUE(channel.push(text("b")));
  EXPECT_TRUE(channel.push(Finished{FinishReason::kLength, {1, 0, 2, 0}}));
  EXPECT_FALSE(channel.push(text("late")));
  EXPECT_EQ(text_of(channel.poll()), "a");
  EXPECT_EQ(text_of(channel.poll()), "b");
  EXPECT_EQ(std::get<Finished>(channel.poll().value()).usage.completion_tokens, 2);
  EXPECT_FALSE(channel.poll());
  EXPECT_FALSE(channel.is_cancelled());
}

TEST(EventChannel, GivesUpOnAConsumerThatLetsTheBufferFillUp) {
  EventChannel channel(3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.push(text("x")));
  EXPECT_FALSE(channel.is_cancelled());
  EXPECT_FALSE(channel.push(text("one too many")));
  EXPECT_TRUE(channel.is_cancelled());
  const auto event = channel.poll();
  EXPECT_EQ(failure_of(event), FailureKind::kSlowConsumer);
  EXPECT_THAT(std::get<Failure>(*event).message, testing::HasSubstr("3 events"));
  EXPECT_FALSE(channel.poll());
}

TEST(EventChannel, HasRoomForTheEndWhenFull) {
  EventChannel channel(1);
  EXPECT_TRUE(channel.push(text("x")));
  EXPECT_TRUE(channel.push(Finished{}));
  EXPECT_EQ(text_of(channel.poll()), "x");
  EXPECT_TRUE(std::holds_alternative<Finished>(channel.poll().value()));
}

TEST(EventChannel, ProgressReplacesUnreadProgress) {
  EventChannel channel(1);
  for (int done = 1; done <= 10; ++done) EXPECT_TRUE(channel.push(PrefillProgress{done, 10}));
  EXPECT_EQ(std::get<PrefillProgress>(channel.poll().value()).done, 10);
  EXPECT_FALSE(channel.poll());
}

TEST(EventChannel, CancelDropsWhatIsUnreadAndStopsTheProducer) {
  EventChannel channel(4);
  channel.push(text("unread"));
  channel.cancel();
  EXPECT_TRUE(channel.is_cancelled());
  EXPECT_FALSE(channel.push(text("late")));
  EXPECT_EQ(failure_of(channel.poll()), FailureKind::kCancelled);
  EXPECT_FALSE(channel.poll());
}

TEST(EventChannel, CancelAfterTheEndChangesNothing) {
  EventChannel channel(4);
  channel.push(Finished{});
  channel.cancel();
  EXPECT_FALSE(channel.is_cancelled());
  EXPECT_TRUE(std::holds_alternative<Finished>(channel.poll().value()));
}

TEST(EventChannel, NotifiesOfEachEventAndOfThoseAlreadyThere) {
  EventChannel channel(4);
  channel.push(text("early"));
  int calls = 0;
  channel.set_notify([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  channel.push(text("x"));
  EXPECT_EQ(calls, 2);
  channel.cancel();
  EXPECT_EQ(calls, 3);
  channel.push(text("late"));
  EXPECT_EQ(calls, 3);
}

TEST(EventChannel, RemovedNotifyIsNotRunningAnyMore) {
  for (int round = 0; round < 50; ++round) {
    EventChannel channel(1 << 20);
    auto target = std::make_unique<std::atomic<int>>(0);
    channel.set_notify([counter = target.get()] { ++*counter; });
    std::jthread producer([&] {
      for (int i = 0; i < 200; ++i) channel.push(text("x"));
    });
    channel.set_notify({});
    target.reset();  // a late call would be a use after free
  }
}

TEST(EventChannel, WaitReturnsOnEventTimeoutAndEnd) {
  EventChannel channel(4);
  EXPECT_FALSE(channel.wait(milliseconds(1)));
  std::jthread producer([&] {
    channel.push(text("x"));
    channel.push(Finished{});
  });
  EXPECT_EQ(text_of(channel.wait(milliseconds(10000))), "x");
  EXPECT_TRUE(channel.wait(milliseconds(10000)));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(channel.wait(milliseconds(10000)));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
}

TEST(EventChannel, RefusesCapacityZero) {
  EXPECT_THROW(EventChannel(0), Exception);
}

}  // namespace
}  // namespace sluice::chat
