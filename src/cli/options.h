// Option groups that several subcommands share: one place for names, defaults and help texts.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/types.h"

namespace sluice::cli {

// Which model runs, and on what.
struct ModelFlags {
  std::string model;
  std::string mode = "fast";
  std::string kernels;
  std::string isa;
  std::string activations;
  std::string dtype;
  int threads = 0;
  int cache_tokens = 0;
  bool check_kernels = false;

  void add_to(CLI::App& app);
  engine::EngineOptions engine_options() const;
};

// How tokens are chosen and when they end.
struct GenerationFlags {
  engine::SamplingChoices sampling;
  std::vector<std::string> logit_bias;  // "ID=BIAS"
  std::optional<int> max_tokens;
  int min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int> stop_token_ids;
  std::optional<int> prefill_chunk;
  bool stats = false;

  void add_to(CLI::App& app, int default_max_tokens);
  // Everything but the prompt. An error names the flag.
  Result<engine::GenerateRequest> request() const;
};

}  // namespace sluice::cli
