// Speed of the forward pass by context and batch, without tokenizer or sampler: what llama-bench
// measures of llama.cpp.
//
//   frontier_bench --model M --prefill 128,512,2048 --decode 128 --rows 1,4 --repeat 3
//
// Prints one CSV line for each piece of work: work, tokens, rows, seconds of the fastest run,
// tokens per second. Tokens are seeded random ids. Decode starts from an empty context.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <random>

#include "models/registry.h"

namespace {

using namespace sluice;
using Clock = std::chrono::steady_clock;

struct Options {
  std::string model, kernels = "cpu", isa, activations;
  std::vector<int> prefill, decode, rows{1};
  int chunk = 512, repeat = 3, threads = 0;
};

class Bench {
 public:
  Bench(models::Model& model, int chunk) : model_(model), chunk_(chunk) {}

  // Seconds to prefill `rows` sequences of `tokens` each, one after the other.
  double prefill(int rows, int tokens) {
    auto sequences = fresh(rows);
    const auto start = Clock::now();
    for (auto& sequence : sequences) {
      for (int done = 0; done < tokens; done += chunk_) {
        const int count = std::min(chunk_, tokens - done);
        pass({sequence.get()}, count, done + count == tokens);
      }
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // Seconds for `tokens` decode steps of `rows` sequences together.
  double decode(int rows, int tokens) {
    auto sequences = fresh(rows);
    std::vector<cache::SequenceState*> all;
    for (auto& sequence : sequences) all.push_back(sequence.get());
    const auto start = Clock::now();
    for (int i = 0; i < tokens; ++i) pass(all, 1, true);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  std::vector<std::unique_ptr<cache::SequenceState>> fresh(int rows) {
    std::vector<std::unique_ptr<cache::SequenceState>> sequences;
    for (int i = 0; i < rows; ++i) sequences.push_back(model_.new_sequence());
    return sequences;
  }

  void pass(const std::vector<cache::SequenceState*>& sequences, int count, bool logits) {
    models::Pass pass;
    std::uniform_int_distribution<int32_t> token(0, model_.traits().vocab_size - 1);
    for (auto* sequence : sequences) {
      pass.rows.push_back(
          {.sequence = sequence,
           .first_token = static_cast<int>(pass.tokens.size()),
           .count = count,
           .first_position = sequence->length(),
           .logits = logits ? models::LogitsWanted::kLast : models::LogitsWanted::kNone});
      for (int i = 0; i < count; ++i) pass.tokens.push_back(token(rng_));
    }
    models::evaluate(model_.forward(pass).value());
    model_.commit(pass.rows, std::vector<int>(sequences.size(), count)).or_throw();
  }

  models::Model& model_;
  int chunk_;
  std::mt19937 rng_{1};
};

template <class Work>
void report(const char* name, int tokens, int rows, int repeat, Work work) {
  work();  // warm-up: pages, caches, frequency
  double best = 1e30;
  for (int i = 0; i < repeat; ++i) best = std::min(best, work());
  std::cout << name << ',' << tokens << ',' << rows << ',' << best << ','
            << tokens * static_cast<double>(rows) / best << std::endl;
}

void run(const Options& options) {
  kernels::ContextOptions context_options;
  context_options.backend = kernels::parse_backend(options.kernels).value();
  if (!options.isa.empty()) context_options.isa = kernels::parse_isa(options.isa).value();
  if (!options.activations.empty()) {
    context_options.activations = kernels::ActivationPlan::parse(options.activations).value();
  }
  context_options.threads = options.threads;
  auto context = kernels::Context::create(context_options).value();
  auto checkpoint =
      loader::open_checkpoint(options.model, {.progress = {}, .tokenizer = false}).value();
  auto model = models::load_model(checkpoint, *context, {}).value();
  Bench bench(*model, options.chunk);
  std::cout << "work,tokens,rows,seconds,tokens_per_second" << std::endl;
  for (int tokens : options.prefill) {
    report("prefill", tokens, 1, options.repeat, [&] { return bench.prefill(1, tokens); });
  }
  for (int tokens : options.decode) {
    for (int rows : options.rows) {
      report("decode", tokens, rows, options.repeat, [&] { return bench.decode(rows, tokens); });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the forward pass by context and batch");
  app.add_option("--model", options.model)->required();
  app.add_option("--prefill", options.prefill)->delimiter(',');
  app.add_option("--decode", options.decode)->delimiter(',');
  app.add_option("--rows", options.rows)->delimiter(',');
  app.add_option("--chunk", options.chunk);
  app.add_option("--repeat", options.repeat);
  app.add_option("--threads", options.threads);
  app.add_option("--kernels", options.kernels);
  app.add_option("--isa", options.isa);
  app.add_option("--activations", options.activations, "int8, f32, int8,head=f32, ...");
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& error) {
    std::cerr << "frontier_bench: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}
