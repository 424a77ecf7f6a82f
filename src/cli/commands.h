// The subcommands. Each adds itself to the command line; what is returned by run_...() is the
// program's exit code. They print: results on stdout, everything else on stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "base/result.h"

namespace sluice::cli {

// Sets `run` to what the parsed subcommand has to do; it returns an exit code.
using Runner = std::function<Result<int>()>;

void add_chat_command(CLI::App& app, Runner& run);
void add_run_command(CLI::App& app, Runner& run);
void add_serve_command(CLI::App& app, Runner& run);
void add_inspect_command(CLI::App& app, Runner& run);

}  // namespace sluice::cli
