#include "base/cpu_limit.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

namespace sluice {

namespace fs = std::filesystem;

namespace {

std::optional<double> read_number(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// "max 100000" or "150000 100000".
std::optional<double> quota_v2(const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_v1(const fs::path& folder) {
  const auto quota = read_number(folder / "cpu.cfs_quota_us");  // -1: no limit
  const auto period = read_number(folder / "cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0) return *quota / *period;
  return std::nullopt;
}

// The smallest quota of root/path and its ancestors up to root.
template <class ReadQuota>
std::optional<double> smallest_quota(const fs::path& root,
                                     const std::string& path,
                                     ReadQuota read) {
  std::optional<double> smallest;
  fs::path folder = root;
  auto take = [&] {
    if (auto quota = read(folder)) smallest = std::min(smallest.value_or(*quota), *quota);
  };
  take();
  for (const fs::path& part : fs::path(path).relative_path()) {
    // A path that leaves the namespace ("/../..") cannot be followed.
    if (part == "..") break;
    folder /= part;
    take();
  }
  return smallest;
}

bool lists_cpu(const std::string& controllers) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == "cpu") return true;
  }
  return false;
}

}  // namespace

int affinity_cpu_count() {
#if defined(__linux__)
  // The mask must be large enough for the kernel's; grow it until it is.
  for (int cpus = 1024; cpus <= (1 << 18); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

std::optional<double> cgroup_cpu_quota(const fs::path& cgroup_root, const std::string& membership) {
  std::optional<double> smallest;
  auto take = [&](std::optional<double> quota) {
    if (quota) smallest = std::min(smallest.value_or(*quota), *quota);
  };
  // Lines "0::/path" (version 2) and "4:cpu,cpuacct:/path" (version 1).
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      take(smallest_quota(cgroup_root, path, quota_v2));
      take(smallest_quota(cgroup_root / "unified", path, quota_v2));  // the hybrid layout
    } else if (lists_cpu(controllers)) {
      take(smallest_quota(cgroup_root / controllers, path, quota_v1));
      take(smallest_quota(cgroup_root / "cpu", path, quota_v1));
    }
  }
  return smallest;
}

}  // namespace sluice
