// How many processors this process may use: the affinity mask and the CPU quota of its control
// group (containers), which the affinity mask does not show.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sluice {

// Processors in the calling thread's affinity mask, at least 1.
int affinity_cpu_count();

// The smallest CPU quota in processors (1.5 = 150 %) along the control group path of a process, or
// none if unlimited or unknown. cgroup_root: /sys/fs/cgroup; membership: the text of
// /proc/self/cgroup. Understands version 2 (cpu.max, every ancestor counts) and version 1
// (cpu.cfs_quota_us / cpu.cfs_period_us, mounted at cgroup_root/cpu or /cpu,cpuacct).
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& cgroup_root,
                                       const std::string& membership);

}  // namespace sluice
