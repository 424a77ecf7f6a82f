// What a checkpoint is, from its headers alone, and what this machine and build can do: the facts
// behind `sluice inspect`. No MLX in here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::engine {

struct TensorDescription {
  std::string name;            // Hugging Face's: "model.layers.0.mlp.up_proj.weight"
  std::string kind;            // "float32", "affine 4-bit group 32", "Q4_1", ...
  std::vector<int64_t> shape;  // logical, outermost first
  uint64_t bytes = 0;          // in the file
};

// The tensors that play one part in every layer: "model.layers.*.mlp.up_proj.weight".
struct ModuleSummary {
  std::string name;
  std::string kind;  // several kinds of one module are several entries
  std::vector<int64_t> shape;
  int count = 0;
  uint64_t bytes = 0;
  // "int8" or "float32", what the own linear kernel makes of its input by the default of
  // kernels/activation_plan.h; empty: no linear layer.
  std::string activations;
};

struct ModelDescription {
  std::string path, format, family;
  bool supported = false;  // whether a family of this build runs it
  std::string problem;     // why its config cannot be run; the numbers below are then 0
  int num_layers = 0, attention_layers = 0, hidden_size = 0, heads = 0, kv_heads = 0, head_dim = 0,
      vocab_size = 0;
  int context_tokens = 0;
  uint64_t parameters = 0;
  uint64_t file_bytes = 0;
  // Weight bytes that one decoded token reads: all of them, but of an embedding that is not the
  // head too only one row.
  uint64_t weight_bytes_per_token = 0;
  uint64_t cache_bytes_per_token = 0;     // keys and values in float32
  uint64_t cache_bytes_per_sequence = 0;  // whatever its length: gated-delta slots
  std::vector<int32_t> eos_token_ids;
  bool chat_template = false;
  std::vector<ModuleSummary> modules;
  std::vector<TensorDescription> tensors;  // by name
};

// Reads headers only. Errors: those of loader::open_checkpoint. Fields that the config does not
// state are 0.
Result<ModelDescription> describe_model(const std::filesystem::path& path);

struct OpImplementations {
  std::string op;
  std::vector<std::string> backends;  // best first
};

struct MachineDescription {
  std::string processor;
  int threads = 0;                // that would be used: affinity and the cgroup's quota
  std::vector<std::string> isas;  // kernel variants that run here
  std::string isa;                // the one that would be chosen
  std::string activations;        // of linear layers by default: "int8", "int8,head=f32", ...
  uint64_t memory_bytes = 0;
  std::string mlx_version;
  std::string mlx_library;  // path of the library that is loaded
  std::vector<OpImplementations> ops;
  std::vector<std::string> families;  // model types that this build runs
};

MachineDescription describe_machine();

}  // namespace sluice::engine
