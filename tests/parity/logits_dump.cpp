// Test helper: runs a model over a prompt and some greedy steps and writes the logits as raw
// float32, for comparison with an oracle.
//
//   logits_dump --model M --prompt 1,2,3 --steps 32 --out FILE [--kernels reference] ...
//
// The prompt's first P - 1 tokens go in chunks of --chunk, the last alone, then one token per step:
// mlx-lm's call shapes. FILE gets (steps + 1) * V floats; stdout one JSON line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "models/registry.h"

namespace {

using namespace sluice;

struct Options {
  std::string model, prompt, out, kernels = "cpu", dtype, isa, activations;
  std::vector<int32_t> force;  // tokens to feed instead of the greedy ones
  int steps = 0, chunk = 2048, threads = 0;
  bool check = false;
};

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    ids.push_back(std::stoi(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return ids;
}

std::optional<mx::Dtype> parse_dtype(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name == "float32") return mx::float32;
  if (name == "float16") return mx::float16;
  if (name == "bfloat16") return mx::bfloat16;
  throw_error(ErrorCode::kInvalidArgument, "unknown dtype {}", name);
}

// One pass of one row; the last token's logits as float32.
std::vector<float> step(models::Model& model,
                        cache::SequenceState& sequence,
                        std::vector<int32_t> tokens,
                        bool wants_logits) {
  models::Pass pass{std::move(tokens), {}};
  const int count = static_cast<int>(pass.tokens.size());
  pass.rows.push_back(
      {.sequence = &sequence,
       .first_token = 0,
       .count = count,
       .first_position = sequence.length(),
       .logits = wants_logits ? models::LogitsWanted::kLast : models::LogitsWanted::kNone});
  auto output = model.forward(pass).value();
  models::evaluate(output);
  model.commit(pass.rows, std::vector<int>{count}).or_throw();
  if (!wants_logits) return {};
  auto logits = mx::astype(*output.logits, mx::float32);
  mx::eval(logits);
  return {logits.data<float>(), logits.data<float>() + logits.size()};
}

void run(const Options& options) {
  kernels::ContextOptions context_options;
  context_options.backend = kernels::parse_backend(options.kernels).value();
  if (!options.isa.empty()) context_options.isa = kernels::parse_isa(options.isa).value();
  if (!options.activations.empty()) {
    context_options.activations = kernels::ActivationPlan::parse(options.activations).value();
  }
  context_options.threads = options.threads;
  context_options.check = options.check;
  auto context = kernels::Context::create(context_options).value();
  auto checkpoint =
      loader::open_checkpoint(options.model, {.progress = {}, .tokenizer = false}).value();
  auto model =
      models::load_model(checkpoint, *context, {.dtype = parse_dtype(options.dtype)}).value();
  auto sequence = model->new_sequence();

  const auto prompt = parse_ids(options.prompt);
  std::ofstream file(options.out, std::ios::binary);
  std::vector<int32_t> greedy;
  for (size_t done = 0; done + 1 < prompt.size();) {
    const size_t count = std::min<size_t>(options.chunk, prompt.size() - 1 - done);
    step(*model, *sequence, {prompt.begin() + done, prompt.begin() + done + count}, false);
    done += count;
  }
  int32_t token = prompt.back();
  for (int i = 0; i <= options.steps; ++i) {
    auto logits = step(*model, *sequence, {token}, true);
    file.write(reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float));
    greedy.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
    token = i < static_cast<int>(options.force.size()) ? options.force[i] : greedy.back();
  }
  if (!file.flush()) throw_error(ErrorCode::kIo, "cannot write {}", options.out);

  nlohmann::json report = {{"greedy", greedy},
                           {"vocab_size", model->traits().vocab_size},
                           {"linear_kernel_runs", context->kernel_runs(kernels::Op::kLinear)}};
  for (const auto& [op, record] : context->check_records()) {
    report["check"][kernels::op_name(op)] = {{"calls", record.calls},
                                             {"max_abs_error", record.max_abs_error},
                                             {"max_reference", record.max_reference}};
  }
  std::cout << report.dump() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes a model's logits for comparison with an oracle");
  std::string force;
  app.add_option("--model", options.model)->required();
  app.add_option("--prompt", options.prompt, "token ids, comma separated")->required();
  app.add_option("--out", options.out)->required();
  app.add_option("--steps", options.steps);
  app.add_option("--chunk", options.chunk);
  app.add_option("--kernels", options.kernels);
  app.add_option("--dtype", options.dtype);
  app.add_option("--isa", options.isa);
  app.add_option("--activations", options.activations);
  app.add_option("--threads", options.threads);
  app.add_option("--force", force, "token ids to feed instead of the greedy ones");
  app.add_flag("--check-kernels", options.check);
  CLI11_PARSE(app, argc, argv);
  try {
    options.force = parse_ids(force);
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "logits_dump: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
