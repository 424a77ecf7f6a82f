// sluice chat: a conversation in the terminal, or line by line through a pipe.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/kernel_report.h"
#include "cli/options.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr int kDefaultMaxTokens = 1024;

constexpr const char* kHelp =
    "/help          this text\n"
    "/clear         forget the conversation; the system prompt stays\n"
    "/system TEXT   set the system prompt (without TEXT: remove it) and forget the conversation\n"
    "/stats         show token counts and speed after each answer, or stop showing them\n"
    "/exit          leave (so does Ctrl-D, and Ctrl-C at an empty prompt twice)\n"
    "Ctrl-C stops an answer. A line that ends in \\ goes on in the next one. A message that "
    "starts\n"
    "with / is sent by writing // instead.\n";

struct ChatFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::string system;
};

// Where lines are kept between sessions; empty if there is no home.
std::string history_path() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state && *state) {
    folder = state;
  } else if (home && *home) {
    folder = std::filesystem::path(home) / ".local" / "state";
  } else {
    return "";
  }
  folder /= "sluice";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? "" : (folder / "chat_history").string();
}

class Chat {
 public:
  Chat(const TextModel& model, const ChatFlags& flags, engine::GenerateRequest request)
      : flags_(flags),
        request_(std::move(request)),
        conversation_(model, flags.system),
        show_stats_(flags.generation.stats),
        interactive_(isatty(STDIN_FILENO) != 0) {}

  Result<int> loop();

 private:
  // False: leave.
  bool run_slash_command(std::string_view line);
  Status answer(std::string_view text);

  const ChatFlags& flags_;
  const engine::GenerateRequest request_;
  Conversation conversation_;
  bool show_stats_;
  const bool interactive_;
};

bool Chat::run_slash_command(std::string_view line) {
  const auto space = line.find(' ');
  const auto name = line.substr(0, space);
  auto rest = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  if (name == "/exit" || name == "/quit") return false;
  if (name == "/help") {
    fmt::print(stderr, "{}", kHelp);
  } else if (name == "/clear") {
    conversation_.clear();
    fmt::print(stderr, "[a new conversation]\n");
  } else if (name == "/system") {
    conversation_.set_system(std::string(rest));
    fmt::print(stderr, "[a new conversation, {} system prompt]\n", rest.empty() ? "no" : "new");
  } else if (name == "/stats") {
    show_stats_ = !show_stats_;
    fmt::print(stderr, "[statistics {}]\n", show_stats_ ? "on" : "off");
  } else {
    fmt::print(stderr, "[unknown command {}; /help lists them]\n", name);
  }
  return true;
}

Status Chat::answer(std::string_view text) {
  InterruptGuard guard;
  SLUICE_TRY(const auto answer,
             conversation_.ask(
                 text,
                 request_,
                 kDefaultMaxTokens,
                 flags_.generation.stop,
                 [](std::string_view piece) {
                   std::fwrite(piece.data(), 1, piece.size(), stdout);
                   std::fflush(stdout);
                 },
                 guard.flag()));
  fmt::print("\n");
  std::fflush(stdout);
  if (guard.interrupted()) fmt::print(stderr, "[stopped]\n");
  if (show_stats_) fmt::print(stderr, "[{}]\n", stats_line(answer.result));
  return {};
}

Result<int> Chat::loop() {
  SLUICE_TRY(auto editor, LineEditor::create(interactive_ ? history_path() : ""));
  bool interrupted_before = false;
  std::string message;
  for (;;) {
    const char* prompt = !interactive_ ? "" : message.empty() ? "> " : ". ";
    SLUICE_TRY(const auto line, editor.read(prompt));
    if (line.kind == LineKind::kEof) break;
    if (line.kind == LineKind::kInterrupted) {
      if (interrupted_before && message.empty()) return kExitInterrupted;
      interrupted_before = true;
      message.clear();
      fmt::print(stderr, "[Ctrl-C again or /exit leaves]\n");
      continue;
    }
    interrupted_before = false;
    message += line.text;
    if (message.ends_with('\\')) {
      message.back() = '\n';
      continue;
    }
    const auto text = std::exchange(message, {});
    if (text.empty()) continue;
    if (text.starts_with('/') && !text.starts_with("//")) {
      if (!run_slash_command(text)) break;
      continue;
    }
    const auto status = answer(text.starts_with("//") ? std::string_view(text).substr(1) : text);
    if (status.ok()) continue;
    // Whoever sits at the terminal can go on; a pipe must not lose an error.
    if (!interactive_) return status.error();
    fmt::print(stderr, "[{}]\n", status.error().message);
  }
  if (interactive_) SLUICE_TRY_STATUS(editor.save());
  return kExitOk;
}

Result<int> run_chat(const ChatFlags& flags) {
  SLUICE_TRY(auto request, flags.generation.request());
  SLUICE_TRY(const auto model, TextModel::load(flags.model.engine_options()));
  if (!model.has_chat_template()) {
    return make_error(ErrorCode::kUnsupported,
                      "{} has no chat template; continue a text with `sluice run -p`",
                      model.engine().info().name);
  }
  if (isatty(STDIN_FILENO) != 0) {
    const auto& info = model.engine().info();
    fmt::print(stderr,
               "{} ({}, {} kernels), {} tokens of context. /help lists the commands.\n",
               info.name,
               info.family,
               info.kernels,
               model.room_behind(0));
  }
  SLUICE_TRY(const int code, Chat(model, flags, std::move(request)).loop());
  if (flags.model.check_kernels) print_kernel_report(model.engine());
  return code;
}

}  // namespace

void add_chat_command(CLI::App& app, Runner& run) {
  auto flags = std::make_shared<ChatFlags>();
  auto* command = app.add_subcommand("chat", "Chat in the terminal; /help inside lists commands");
  flags->model.add_to(*command);
  command->add_option("--system", flags->system, "System prompt");
  flags->generation.add_to(*command, kDefaultMaxTokens);
  command->callback([flags, &run] { run = [flags] { return run_chat(*flags); }; });
}

}  // namespace sluice::cli
