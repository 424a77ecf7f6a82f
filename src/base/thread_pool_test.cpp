#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/cpu_limit.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace sluice {
namespace {

TEST(ThreadPool, EveryItemIsVisitedOnceWhateverTheSizes) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t items : {0, 1, 2, 7, 64, 1000, 4097}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> visits(items);
        pool.parallel_for(items, grain, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          ASSERT_EQ(begin % grain, 0);
          ASSERT_TRUE(end % grain == 0 || end == items);
          for (int64_t i = begin; i < end; ++i) visits[i].fetch_add(1);
        });
        for (auto& visit : visits) ASSERT_EQ(visit.load(), 1);
      }
    }
  }
}

// Plain (non-atomic) data goes in and comes out of every job: what TSan and a missing fence catch.
TEST(ThreadPool, ManyShortJobsSeeEachOthersWrites) {
  ThreadPool pool(3);
  std::vector<int64_t> values(50, 0);
  for (int64_t round = 0; round < 3000; ++round) {
    pool.parallel_for(50, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        ASSERT_EQ(values[i], round);
        ++values[i];
      }
    });
  }
}

TEST(ThreadPool, WorkersThatFellAsleepComeBack) {
  ThreadPool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::mutex mutex;
    std::set<std::thread::id> seen;
    // A worker must take part: the caller alone would wait for ever in the first range.
    pool.parallel_for(2, 1, [&](int64_t, int64_t) {
      for (;;) {
        std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        if (seen.size() == 2) return;
      }
    });
    EXPECT_EQ(seen.size(), 2u);
  }
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(20, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto thread = std::this_thread::get_id();
      pool.parallel_for(10, 1, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), thread);
        total += static_cast<int>(inner_end - inner_begin);
      });
    }
  });
  EXPECT_EQ(total.load(), 200);
}

TEST(ThreadPool, TwoCallersTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> bodies{0};
  auto call = [&] {
    for (int round = 0; round < 500; ++round) {
      pool.parallel_for(
          8, 1, [&](int64_t begin, int64_t end) { bodies += static_cast<int>(end - begin); });
    }
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(bodies.load(), 2 * 500 * 8);
}

#if defined(__x86_64__)
TEST(ThreadPool, FloatStateIsTheSameOnAllThreadsAndIsRestored) {
  ThreadPool pool(2);
  const unsigned former = _mm_getcsr();
  _mm_setcsr(0x9fc0);  // flush to zero, denormals are zero
  std::atomic<int> strange{0};
  pool.parallel_for(64, 1, [&](int64_t, int64_t) {
    if ((_mm_getcsr() & 0xffc0) != 0x1f80) ++strange;
  });
  EXPECT_EQ(_mm_getcsr() & 0xffc0, 0x9fc0u);
  _mm_setcsr(former);
  EXPECT_EQ(strange.load(), 0);
}
#endif

class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("sluice_cgroup_" +
             std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()));
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};

TEST_F(CgroupQuota, Version2TakesTheSmallestOfAllAncestors) {
  write("a/cpu.max", "150000 100000\n");
  write("a/b/cpu.max", "max 100000\n");
  write("a/b/c/cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_, "0::/a/b/c\n"), 1.5);
  EXPECT_EQ(cgroup_cpu_quota(root_, "0::/x\n"), std::nullopt);
}

TEST_F(CgroupQuota, Version1FindsTheCpuControllerOnly) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("cpuacct/job/cpu.cfs_quota_us", "100000\n");
  write("cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_, "5:cpuacct:/job\n4:cpu,cpuacct:/job\n0::/\n"), 3.0);
  EXPECT_EQ(cgroup_cpu_quota(root_, "5:cpuacct:/job\n"), std::nullopt);
}

TEST_F(CgroupQuota, UnlimitedAndMalformedTextsAreNoQuota) {
  write("cpu/cpu.cfs_quota_us", "-1\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cpu_quota(root_, "4:cpu:/\n"), std::nullopt);
  EXPECT_EQ(cgroup_cpu_quota(root_, "no colons\n::::\n"), std::nullopt);
  EXPECT_EQ(cgroup_cpu_quota(root_, ""), std::nullopt);
}

TEST(ThreadPool, DefaultSizeIsWithinTheAffinityMask) {
  EXPECT_GE(ThreadPool::default_size(), 1);
  EXPECT_LE(ThreadPool::default_size(), affinity_cpu_count());
}

}  // namespace
}  // namespace sluice
