// The program's exit codes, as `sluice --help` lists them.
#pragma once

namespace sluice::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;          // what was asked for failed; stderr says why
inline constexpr int kExitUsage = 2;          // the command line is wrong
inline constexpr int kExitInterrupted = 130;  // Ctrl-C, as shells report it

}  // namespace sluice::cli
