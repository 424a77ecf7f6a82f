// What the engine's tests share: the default model and token streams. For *_test.cpp only.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace sluice::engine {

// The default model's path: SLUICE_DEFAULT_MODEL, else where `make setup` puts it.
inline std::filesystem::path test_model_path() {
  if (const char* path = std::getenv("SLUICE_DEFAULT_MODEL")) return path;
  return std::string(SLUICE_SOURCE_DIR) + "/.deps/models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline std::unique_ptr<Engine> load_engine(EngineOptions options = {}) {
  options.model = test_model_path();
  if (options.cache_tokens == 0) options.cache_tokens = 1024;
  auto engine = Engine::load(options);
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message << " (the default model comes with `make setup`)";
    std::abort();
  }
  return std::move(engine).value();
}

inline std::vector<int32_t> random_tokens(int count, int seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> id(20, 49000);
  std::vector<int32_t> tokens(count);
  for (auto& token : tokens) token = id(random);
  return tokens;
}

}  // namespace sluice::engine
