#include "models/llama/config.h"

#include <algorithm>

#include "base/config_reader.h"
#include "nn/rope_config.h"

namespace sluice::models {
namespace {

constexpr int kMaxDim = 1 << 24;

// Layers with a sliding window are another family's business; running them as full attention would
// silently give other tokens.
void refuse_sliding_layers(const nlohmann::json& config, ConfigReader& reader) {
  bool sliding = reader.boolean("use_sliding_window", false);
  if (reader.has("layer_types")) {
    for (const auto& type : config.at("layer_types")) sliding |= type != "full_attention";
  }
  if (sliding) {
    reader.fail(ErrorCode::kUnsupported,
                "config.json asks for sliding-window layers (layer_types or use_sliding_window), "
                "which this family does not support");
  }
}

}  // namespace

Result<LlamaConfig> LlamaConfig::from_json(const nlohmann::json& config) {
  ConfigReader reader(config, "config.json");
  LlamaConfig c;
  c.model_type = reader.text("model_type");
  c.hidden_size = reader.integer("hidden_size", 1, kMaxDim);
  c.num_layers = reader.integer("num_hidden_layers", 1, 10000);
  c.intermediate_size = reader.integer("intermediate_size", 1, kMaxDim);
  c.heads = reader.integer("num_attention_heads", 1, 65536);
  c.kv_heads = reader.integer("num_key_value_heads", 1, 65536, c.heads);
  c.vocab_size = reader.integer("vocab_size", 1, kMaxDim);
  c.max_positions = reader.integer("max_position_embeddings", 1, 1 << 30, 32768);
  c.norm_eps = static_cast<float>(reader.number("rms_norm_eps"));
  SLUICE_TRY_STATUS(reader.status());
  c.head_dim = reader.integer("head_dim", 1, 4096, std::clamp(c.hidden_size / c.heads, 1, 4096));

  const bool qwen2 = c.model_type == "qwen2";
  c.qkv_bias = reader.boolean("attention_bias", qwen2);
  c.out_bias = !qwen2 && c.qkv_bias;
  c.mlp_bias = reader.boolean("mlp_bias", false);
  c.qk_norm = c.model_type == "qwen3";
  if (reader.has("tie_word_embeddings")) c.tied_head = reader.boolean("tie_word_embeddings");
  refuse_sliding_layers(config, reader);
  if (c.model_type == "mistral" && reader.has("sliding_window")) {
    // Within the window full attention is the same thing, so the context ends there.
    c.max_positions = std::min(c.max_positions, reader.integer("sliding_window", 1, 1 << 30));
  }
  if (c.heads % c.kv_heads != 0) {
    reader.fail(ErrorCode::kCorruptFile,
                fmt::format("config.json: num_attention_heads {} is not a multiple of "
                            "num_key_value_heads {}",
                            c.heads,
                            c.kv_heads));
  }
  if (c.head_dim % 2 != 0) {
    reader.fail(
        ErrorCode::kUnsupported,
        fmt::format("config.json: head_dim {} is odd; rotary embedding needs pairs", c.head_dim));
  }
  const std::string activation = reader.text("hidden_act", "silu");
  if (activation != "silu") {
    reader.fail(ErrorCode::kUnsupported,
                fmt::format("config.json: hidden_act \"{}\" is not supported; supported is silu",
                            activation));
  }
  SLUICE_TRY_STATUS(reader.status());
  SLUICE_TRY(c.rope, nn::rope_from_config(config, c.head_dim, qwen2 ? 1000000.0 : 10000.0));
  return c;
}

}  // namespace sluice::models
