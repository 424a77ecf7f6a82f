// The entry point: the one place that turns errors into messages and exit codes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/exit_code.h"

namespace {

int run_program(int argc, char** argv) {
  using namespace sluice;
  CLI::App app("Runs language models from GGUF files and MLX folders.", "sluice");
  app.set_version_flag("--version", version_line());
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done; 1 failed, with the reason on stderr; 2 wrong command line; 130 "
      "interrupted by Ctrl-C.\nEnvironment: SLUICE_MODEL, SLUICE_HOST and SLUICE_PORT stand for "
      "--model, "
      "--host and --port; SLUICE_LOG sets the log level (trace, debug, info, warn, error, off).");
  cli::Runner run;
  cli::add_chat_command(app, run);
  cli::add_run_command(app, run);
  cli::add_serve_command(app, run);
  cli::add_inspect_command(app, run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // Help and version are "errors" of code 0; CLI11's own codes for the rest are many.
    return app.exit(e) == 0 ? cli::kExitOk : cli::kExitUsage;
  }
  init_logging().or_throw();
  const auto code = run();
  if (code.ok()) return *code;
  fmt::print(stderr, "sluice: {}\n", code.error().message);
  return cli::kExitError;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "sluice: {}\n", e.what());
    return sluice::cli::kExitError;
  }
}
