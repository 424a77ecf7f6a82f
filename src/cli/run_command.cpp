// sluice run: one prompt, one answer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/kernel_report.h"
#include "cli/options.h"

namespace sluice::cli {
namespace {

constexpr int kDefaultMaxTokens = 512;

struct RunFlags {
  ModelFlags model;
  GenerationFlags generation;
  std::string prompt;
  bool chat = false;
  std::string system;
  bool json = false;
  std::optional<int> logprobs;
  bool processed = false;
};

std::string read_stdin() {
  return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
}

Result<std::vector<int32_t>> encode_prompt(const TextModel& model, const RunFlags& flags) {
  const auto prompt = flags.prompt == "-" ? read_stdin() : flags.prompt;
  if (!flags.chat) return model.encode(prompt);
  chat::Messages conversation;
  auto& messages = conversation.messages;
  if (!flags.system.empty()) messages.push_back({{"role", "system"}, {"content", flags.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return model.encode(conversation);
}

// One token as text; its bytes too, since they may be a part of a character.
Json token_json(const text::Tokenizer& tokenizer, int32_t id, std::optional<float> logprob) {
  const auto bytes = tokenizer.token_bytes(id).value_or("");
  Json json = {{"id", id}, {"token", bytes}};
  json["bytes"] = std::vector<uint8_t>(bytes.begin(), bytes.end());
  if (logprob) json["logprob"] = *logprob;
  return json;
}

Json answer_json(const TextModel& model, const Answer& answer) {
  const auto& result = answer.result;
  Json json;
  json["model"] = model.engine().info().name;
  json["kernels"] = model.engine().info().kernels;
  json["activations"] = model.engine().info().activations;
  json["text"] = answer.text;
  json["finish_reason"] = engine::finish_reason_name(result.finish_reason);
  if (result.stop_token) json["stop_token"] = *result.stop_token;
  if (answer.stop_string) json["stop_string"] = *answer.stop_string;
  json["tokens"] = result.tokens;
  if (result.sampling.logprobs) {
    json["logprobs"] = Json::array();
    for (const auto& record : answer.tokens) {
      auto entry = token_json(model.tokenizer(), record.token, record.logprob);
      entry["top"] = Json::array();
      for (const auto& top : record.top) {
        entry["top"].push_back(token_json(model.tokenizer(), top.token, top.logprob));
      }
      json["logprobs"].push_back(std::move(entry));
    }
  }
  json["seed"] = result.seed;
  json["usage"] = {{"prompt_tokens", result.usage.prompt_tokens},
                   {"cached_tokens", result.usage.cached_tokens},
                   {"completion_tokens", result.usage.completion_tokens}};
  json["timings"] = {{"load_seconds", model.engine().info().load_seconds},
                     {"prefill_seconds", result.timings.prefill_seconds},
                     {"decode_seconds", result.timings.decode_seconds}};
  return json;
}

Result<int> run_once(const RunFlags& flags) {
  SLUICE_TRY(auto request, flags.generation.request());
  request.sampling.logprobs = flags.logprobs;
  if (flags.processed) request.sampling.logprobs_kind = sampling::LogprobsKind::kProcessed;
  SLUICE_TRY(const auto model, TextModel::load(flags.model.engine_options()));
  SLUICE_TRY(request.prompt, encode_prompt(model, flags));
  if (!request.max_tokens) {
    // What fits if that is less, but never below 1, so that a full context is the engine's error.
    request.max_tokens =
        std::max(1, std::min(kDefaultMaxTokens, model.room_behind(request.prompt.size())));
  }

  InterruptGuard guard;
  auto on_text = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  const std::function<void(std::string_view)> silent;
  SLUICE_TRY(const auto answer,
             generate_answer(model,
                             request,
                             flags.generation.stop,
                             flags.json ? silent : std::function<void(std::string_view)>(on_text),
                             guard.flag()));
  if (flags.json) {
    // Bytes that are no UTF-8 (in "token") become U+FFFD; "bytes" has them as they are.
    fmt::print("{}\n",
               answer_json(model, answer).dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (!answer.text.ends_with('\n')) {
    fmt::print("\n");
  }
  std::fflush(stdout);
  if (flags.generation.stats) fmt::print(stderr, "[{}]\n", stats_line(answer.result));
  if (flags.model.check_kernels) print_kernel_report(model.engine());
  return guard.interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

void add_run_command(CLI::App& app, Runner& run) {
  auto flags = std::make_shared<RunFlags>();
  auto* command = app.add_subcommand("run", "Continue a prompt, or answer it once with --chat");
  flags->model.add_to(*command);
  command->add_option("-p,--prompt", flags->prompt, "The prompt; - reads it from stdin")
      ->required();
  auto* chat = command->add_flag(
      "--chat", flags->chat, "Take the prompt as a user's message, through the chat template");
  command->add_option("--system", flags->system, "System prompt")->needs(chat);
  auto* json = command->add_flag("--json", flags->json, "One JSON object with ids and timings");
  auto* logprobs = command
                       ->add_option("--logprobs",
                                    flags->logprobs,
                                    "Log-probabilities of each token and of the N most likely")
                       ->needs(json);
  command->add_flag("--processed-logprobs", flags->processed, "After penalties and filters")
      ->needs(logprobs);
  flags->generation.add_to(*command, kDefaultMaxTokens);
  command->callback([flags, &run] { run = [flags] { return run_once(*flags); }; });
}

}  // namespace sluice::cli
