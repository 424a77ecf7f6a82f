// Helpers of the families' tests: random checkpoints, and sequences driven through passes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "mlx/io.h"
#include "mlx/random.h"
#include "models/registry.h"

namespace sluice::models::testing {

// A folder with a seeded random quantized checkpoint, removed at the end of the test.
class RandomCheckpoint {
 public:
  RandomCheckpoint(const std::string& name, nlohmann::json config) {
    static int counter = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("sluice_" + name + "_" + std::to_string(::getpid()) + "_" + std::to_string(counter++));
    std::filesystem::create_directories(path_);
    mx::random::seed(11);
    config["quantization"] = {{"group_size", 32}, {"bits", 4}};
    std::ofstream(path_ / "config.json") << config.dump();
  }
  ~RandomCheckpoint() { std::filesystem::remove_all(path_); }
  RandomCheckpoint(const RandomCheckpoint&) = delete;
  RandomCheckpoint& operator=(const RandomCheckpoint&) = delete;

  std::unordered_map<std::string, mx::array>& weights() { return weights_; }

  // 4 bits in groups of 32.
  void add_matrix(const std::string& path, int out, int in) {
    auto w = mx::multiply(mx::random::normal({out, in}), mx::array(1.5f / std::sqrt(float(in))));
    auto parts = mx::quantize(w, 32, 4);
    weights_.insert_or_assign(path + ".weight", parts[0]);
    weights_.insert_or_assign(path + ".scales", parts[1]);
    weights_.insert_or_assign(path + ".biases", parts[2]);
  }
  void add_norm(const std::string& path, int size) { add(path + ".weight", {size}, 1.0f, 0.1f); }
  // mean + deviation * normal.
  void add(const std::string& name, const mx::Shape& shape, float mean, float deviation) {
    weights_.insert_or_assign(
        name,
        mx::add(mx::array(mean), mx::multiply(mx::random::normal(shape), mx::array(deviation))));
  }

  Result<loader::Checkpoint> open() {
    mx::save_safetensors((path_ / "model.safetensors").string(), weights_);
    return loader::open_checkpoint(path_, {.progress = {}, .tokenizer = false});
  }

 private:
  std::filesystem::path path_;
  std::unordered_map<std::string, mx::array> weights_;
};

struct Loaded {
  std::unique_ptr<kernels::Context> context;
  std::unique_ptr<Model> model;
};

inline Loaded load(RandomCheckpoint& tiny,
                   const kernels::ContextOptions& options,
                   int cache_tokens) {
  Loaded loaded;
  loaded.context = kernels::Context::create(options).value();
  auto checkpoint = tiny.open().value();
  loaded.model =
      load_model(checkpoint, *loaded.context, {.dtype = {}, .cache_tokens = cache_tokens}).value();
  return loaded;
}

inline kernels::ContextOptions backend(kernels::Backend backend) {
  kernels::ContextOptions options;
  options.backend = backend;
  return options;
}

inline kernels::ContextOptions check_mode() {
  kernels::ContextOptions options;
  options.check = true;
  return options;
}

// One sequence's way through a test: its tokens, and the logits of each of them.
struct Stream {
  std::unique_ptr<cache::SequenceState> state;
  std::vector<int32_t> tokens;
  std::vector<std::vector<float>> logits;
};

inline Stream make_stream(Model& model, std::vector<int32_t> tokens) {
  return {model.new_sequence(), std::move(tokens), {}};
}

// Runs the next counts[i] tokens of every stream with a count in one pass, keeps all, and appends
// their logits.
inline void run_pass(Model& model, std::vector<Stream>& streams, const std::vector<int>& counts) {
  Pass pass;
  std::vector<Stream*> owners;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (counts[i] == 0) continue;
    auto& stream = streams[i];
    pass.rows.push_back({.sequence = stream.state.get(),
                         .first_token = static_cast<int>(pass.tokens.size()),
                         .count = counts[i],
                         .first_position = stream.state->length(),
                         .logits = LogitsWanted::kAll});
    auto begin = stream.tokens.begin() + stream.state->length();
    pass.tokens.insert(pass.tokens.end(), begin, begin + counts[i]);
    owners.push_back(&stream);
  }
  if (pass.rows.empty()) return;
  auto output = model.forward(pass).value();
  evaluate(output);
  const float* data = output.logits->data<float>();
  const int vocab = model.traits().vocab_size;
  std::vector<int> keep;
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    keep.push_back(pass.rows[r].count);
    for (int i = 0; i < pass.rows[r].count; ++i, data += vocab) {
      owners[r]->logits.emplace_back(data, data + vocab);
    }
  }
  model.commit(pass.rows, keep).or_throw();
}

inline std::vector<int32_t> random_tokens(std::mt19937& rng, int count, int vocab) {
  std::uniform_int_distribution<int32_t> token(0, vocab - 1);
  std::vector<int32_t> tokens(count);
  std::generate(tokens.begin(), tokens.end(), [&] { return token(rng); });
  return tokens;
}

inline std::vector<std::vector<float>> one_by_one(Model& model,
                                                  const std::vector<int32_t>& tokens) {
  std::vector<Stream> alone;
  alone.push_back(make_stream(model, tokens));
  for (size_t i = 0; i < tokens.size(); ++i) run_pass(model, alone, {1});
  return alone[0].logits;
}

}  // namespace sluice::models::testing
