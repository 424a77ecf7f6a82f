#include "engine/engine_thread.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace sluice::engine {
namespace {

TEST(EngineThread, RunsEverythingOnOneThreadAndReturnsValues) {
  EngineThread thread;
  const auto first = thread.run([] { return std::this_thread::get_id(); });
  EXPECT_NE(first, std::this_thread::get_id());
  EXPECT_EQ(first, thread.run([] { return std::this_thread::get_id(); }));
}

TEST(EngineThread, ManyCallersAreServedOneAfterTheOther) {
  EngineThread thread;
  int counter = 0;  // touched on the engine thread only
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) thread.run([&] { ++counter; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(thread.run([&] { return counter; }), 800);
}

TEST(EngineThread, ExceptionsReachTheCaller) {
  EngineThread thread;
  EXPECT_THROW(thread.run([]() -> int { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_EQ(thread.run([] { return 3; }), 3);
}

TEST(EngineThread, CallingItFromItselfIsAnErrorAndNotADeadlock) {
  EngineThread thread;
  EXPECT_THROW(thread.run([&] { thread.run([] {}); }), Exception);
}

}  // namespace
}  // namespace sluice::engine
