// sluice serve: the model over HTTP, until a signal ends it.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/log.h"
#include "chat/engine_service.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/kernel_report.h"
#include "cli/load_progress.h"
#include "cli/options.h"
#include "cli/stop_signals.h"
#include "server/server.h"

namespace sluice::cli {
namespace {

using Seconds = std::chrono::duration<double>;

struct ServeFlags {
  ModelFlags model;
  std::string model_id;
  server::ServerOptions server;
  int max_rows = 0;
  int queue_limit = engine::EngineOptions().queue_limit;
  size_t event_buffer = chat::EngineServiceOptions().channel_capacity;
  double keepalive = Seconds(server::ServerOptions().keepalive).count();
  double drain = 30;
};

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(seconds));
}

int64_t now() {
  using std::chrono::system_clock;
  return system_clock::to_time_t(system_clock::now());
}

Result<int> run_serve(const ServeFlags& flags) {
  // One line for each request is what a server's log is for; SLUICE_LOG says otherwise.
  const char* level = std::getenv(kLogLevelVariable);
  SLUICE_TRY_STATUS(init_logging(level && *level ? level : "info"));
  StopSignals signals;

  auto options = flags.model.engine_options();
  options.max_rows = flags.max_rows;
  options.queue_limit = flags.queue_limit;
  SLUICE_TRY(const auto engine, load_with_progress(std::move(options)));
  SLUICE_TRY(
      const auto service,
      chat::EngineService::create(
          *engine,
          {.model_id = flags.model_id, .created = now(), .channel_capacity = flags.event_buffer}));
  auto server_options = flags.server;
  server_options.keepalive = milliseconds(flags.keepalive);
  SLUICE_TRY(const auto server, server::Server::start(*service, std::move(server_options)));
  signals.on_signal([&](int count) {
    const double grace = count == 1 ? flags.drain : 0;
    fmt::print(stderr,
               "[stopping: {}]\n",
               grace > 0
                   ? fmt::format("running answers have {:g} s, another signal ends them", grace)
                   : "running answers are ended");
    server->stop(milliseconds(grace));
  });

  const auto& info = engine->info();
  const auto model = service->models().front();
  fmt::print(stderr,
             "{} ({}, {} kernels), {} tokens of context; Ctrl-C stops\n",
             model.id,
             info.family,
             info.kernels,
             model.context_length);
  // For programs that start this one: the line says that requests are answered, and where.
  fmt::print("listening on {}\n", server->url());
  std::fflush(stdout);
  server->wait();
  signals.on_signal([](int) {});  // the end is near; a late signal must not turn it into a failure
  if (flags.model.check_kernels) print_kernel_report(*engine);
  return kExitOk;
}

}  // namespace

void add_serve_command(CLI::App& app, Runner& run) {
  auto flags = std::make_shared<ServeFlags>();
  auto* command = app.add_subcommand("serve", "Serve OpenAI's API over HTTP");
  flags->model.add_to(*command);
  auto& server = flags->server;

  auto* address = command->add_option_group("Address");
  address->add_option("--host", server.host, "Address or name to listen on; there is no password")
      ->envname("SLUICE_HOST")
      ->capture_default_str();
  address->add_option("--port", server.port, "0: any free one")
      ->envname("SLUICE_PORT")
      ->capture_default_str();
  address->add_option("--model-id", flags->model_id, "What clients call the model [its file name]");
  address->add_option(
      "--cors-origin", server.cors_origin, "Web origin whose pages may call; * for all");

  auto* limits = command->add_option_group("Limits");
  limits
      ->add_option(
          "--max-rows", flags->max_rows, "Requests that share a pass; 0: 8, in reference mode 1")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  limits
      ->add_option(
          "--queue-limit", flags->queue_limit, "Requests that wait beyond those; more: 503")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  limits->add_option("--max-connections", server.max_connections, "More are answered with 503")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  limits->add_option("--max-body", server.max_body, "Bytes of a request; more: 413")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  limits
      ->add_option("--event-buffer",
                   flags->event_buffer,
                   "Events that a slow client may leave unread before its request is cancelled")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  limits->add_option("--http-threads", server.threads, "Threads for sockets, JSON and templates")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  limits->add_option("--keepalive", flags->keepalive, "Seconds between comments of a silent stream")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  limits
      ->add_option("--drain", flags->drain, "Seconds that running answers get on SIGTERM or Ctrl-C")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command->callback([flags, &run] { run = [flags] { return run_serve(*flags); }; });
}

}  // namespace sluice::cli
