// Logging: spdlog's default logger, on stderr, so that stdout holds nothing but what the user asked
// for. Code logs by spdlog::info(...) and its siblings with fmt formats, from any thread.
//
// Non-goals: log files and rotation (the shell's redirection does it), a level per module.
#pragma once

#include <string_view>

#include "base/result.h"

namespace sluice {

// The variable that sets the level where no flag does.
inline constexpr const char* kLogLevelVariable = "SLUICE_LOG";

// Sets up spdlog's default logger: lines of "<local time> <level> <message>" on stderr, coloured on
// a terminal, at the level `level` or, if that is empty, the environment's SLUICE_LOG or, without
// it, "warn". Levels: trace, debug, info, warn, error, off. Another word is an error that lists
// them and changes nothing. May be called again; not at the same time as another thread logs.
Status init_logging(std::string_view level = {});

}  // namespace sluice
