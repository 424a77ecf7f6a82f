#include "cli/kernel_report.h"

#include <fmt/format.h>

#include <cstdio>

namespace sluice::cli {

void print_kernel_report(const engine::Engine& engine) {
  fmt::print(stderr,
             "{:<12} {:>10} {:>10} {:>12} {:>14}\n",
             "op",
             "runs",
             "checked",
             "max error",
             "max reference");
  for (const auto& report : engine.kernel_report()) {
    fmt::print(stderr,
               "{:<12} {:>10} {:>10} {:>12.3e} {:>14.3e}\n",
               report.op,
               report.kernel_runs,
               report.checked_calls,
               report.max_abs_error,
               report.max_reference);
  }
}

}  // namespace sluice::cli
