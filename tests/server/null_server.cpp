// The HTTP server over the null service, for protocol tests with clients in other languages. Prints
// "listening on <url>" on stdout when it is ready; SIGTERM and SIGINT stop it with a grace of 2 s.
//
// What the answer is, is the null service's rule (an echo), unless chat_template_kwargs of the
// request has "script": "reasoning", "tools" or "failure".
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

#include "base/log.h"
#include "chat/null_service.h"
#include "server/server.h"

namespace {

using namespace sluice;

std::optional<chat::NullScript> script_of(const chat::ChatRequest& request) {
  const auto* messages = std::get_if<chat::Messages>(&request.prompt);
  if (messages == nullptr) return std::nullopt;
  const auto name = messages->template_kwargs.value("script", "");
  const auto text = [](const char* s, chat::Channel channel = chat::Channel::kContent) {
    return chat::TextDelta{channel, s, {}};
  };
  if (name == "reasoning") {
    return chat::NullScript{text("Let me ", chat::Channel::kReasoning),
                            text("think.", chat::Channel::kReasoning),
                            text("The answer"),
                            text(" is 42."),
                            chat::Finished{chat::FinishReason::kStop, {5, 1, 4, 2}}};
  }
  if (name == "tools") {
    return chat::NullScript{chat::ToolCallDelta{0, "call_a", "weather", "{\"city\":"},
                            chat::ToolCallDelta{0, "", "", "\"Graz\"}"},
                            chat::ToolCallDelta{1, "call_b", "time", "{}"},
                            chat::Finished{chat::FinishReason::kToolCalls, {5, 0, 9, 0}}};
  }
  if (name == "failure") {
    return chat::NullScript{text("So far "),
                            text("so good"),
                            chat::Failure{chat::FailureKind::kInternal, "", "the step failed"}};
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  chat::NullServiceOptions null_options;
  null_options.script = script_of;
  server::ServerOptions options;
  options.port = 0;
  CLI::App app("HTTP server without a model");
  app.add_option("--port", options.port, "0: any free one");
  app.add_option("--tokens-per-second", null_options.tokens_per_second, "of each row; 0: no pause");
  app.add_option("--context", null_options.model.context_length, "in tokens");
  CLI11_PARSE(app, argc, argv);
  init_logging("info").or_throw();

  // Blocked in all threads, so that sigwait() below is the one that gets them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  chat::NullService service(null_options);
  auto server = server::Server::start(service, options);
  if (!server.ok()) {
    std::cerr << server.error().message << "\n";
    return 1;
  }
  std::cout << "listening on " << (*server)->url() << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  (*server)->stop(std::chrono::seconds(2));
  (*server)->wait();
  return 0;
}
