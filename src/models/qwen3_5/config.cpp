#include "models/qwen3_5/config.h"

#include <algorithm>

#include "base/config_reader.h"
#include "nn/rope_config.h"

namespace sluice::models {
namespace {

using nlohmann::json;

constexpr int kMaxDim = 1 << 24;
constexpr int kMaxHeads = 65536;

// Which layers are gated delta: layer_types where it is given, else every layer but each
// full_attention_interval-th.
std::vector<bool> linear_layers(const json& text, ConfigReader& reader, int num_layers) {
  std::vector<bool> linear;
  const int interval = reader.integer("full_attention_interval", 1, 10000, 4);
  for (int i = 0; i < num_layers; ++i) linear.push_back((i + 1) % interval != 0);
  if (!reader.has("layer_types")) return linear;

  const json& types = text.at("layer_types");
  if (!types.is_array() || types.size() != static_cast<size_t>(num_layers)) {
    reader.fail(ErrorCode::kCorruptFile,
                fmt::format("config.json: layer_types must be a list of num_hidden_layers, {}, "
                            "strings",
                            num_layers));
    return linear;
  }
  for (int i = 0; i < num_layers; ++i) {
    linear[i] = types[i] == "linear_attention";
    if (!linear[i] && types[i] != "full_attention") {
      reader.fail(ErrorCode::kUnsupported,
                  fmt::format("config.json: layer_types[{}] is {}; this family knows "
                              "linear_attention and full_attention",
                              i,
                              types[i].dump()));
    }
  }
  return linear;
}

void read_experts(const json& text, ConfigReader& reader, Qwen35Config& c) {
  c.moe_layer.assign(c.num_layers, false);
  c.experts = reader.integer("num_experts", 0, 1 << 20, 0);
  if (c.experts == 0) return;
  c.experts_per_token = reader.integer("num_experts_per_tok", 1, c.experts);
  c.expert_intermediate_size = reader.integer("moe_intermediate_size", 1, kMaxDim);
  c.shared_intermediate_size = reader.integer("shared_expert_intermediate_size", 1, kMaxDim);
  const bool next = c.model_type == "qwen3_next";
  c.normalize_scores = reader.boolean("norm_topk_prob", !next);
  // Only qwen3_next mixes dense and expert layers.
  const int step = next ? reader.integer("decoder_sparse_step", 1, 10000, 1) : 1;
  for (int i = 0; i < c.num_layers; ++i) c.moe_layer[i] = (i + 1) % step == 0;
  if (!next || !reader.has("mlp_only_layers")) return;
  for (const auto& layer : text.at("mlp_only_layers")) {
    if (!layer.is_number_integer() || layer < 0 || layer >= c.num_layers) {
      reader.fail(ErrorCode::kCorruptFile,
                  fmt::format("config.json: mlp_only_layers names layer {}; there are {} layers",
                              layer.dump(),
                              c.num_layers));
      return;
    }
    c.moe_layer[layer.get<int>()] = false;
  }
}

void read_gated_delta(ConfigReader& reader, Qwen35Config& c) {
  c.key_heads = reader.integer("linear_num_key_heads", 1, kMaxHeads);
  c.value_heads = reader.integer("linear_num_value_heads", 1, kMaxHeads);
  c.key_dim = reader.integer("linear_key_head_dim", 1, 4096);
  c.value_dim = reader.integer("linear_value_head_dim", 1, 4096);
  c.conv_kernel = reader.integer("linear_conv_kernel_dim", 2, 64, 4);
  if (!reader.status().ok()) return;
  if (c.value_heads % c.key_heads != 0) {
    reader.fail(ErrorCode::kCorruptFile,
                fmt::format("config.json: linear_num_value_heads {} is not a multiple of "
                            "linear_num_key_heads {}",
                            c.value_heads,
                            c.key_heads));
  }
  if (c.key_dim % 32 != 0) {
    reader.fail(
        ErrorCode::kUnsupported,
        fmt::format("config.json: linear_key_head_dim {} is not a multiple of 32", c.key_dim));
  }
}

void read_attention(ConfigReader& reader, Qwen35Config& c) {
  c.heads = reader.integer("num_attention_heads", 1, kMaxHeads);
  c.kv_heads = reader.integer("num_key_value_heads", 1, kMaxHeads, c.heads);
  if (!reader.status().ok()) return;
  c.head_dim = reader.integer("head_dim", 1, 4096, std::clamp(c.hidden_size / c.heads, 1, 4096));
  c.attention_bias = reader.boolean("attention_bias", false);
  if (c.heads % c.kv_heads != 0) {
    reader.fail(ErrorCode::kCorruptFile,
                fmt::format("config.json: num_attention_heads {} is not a multiple of "
                            "num_key_value_heads {}",
                            c.heads,
                            c.kv_heads));
  }
  if (!reader.boolean("attn_output_gate", true)) {
    reader.fail(ErrorCode::kUnsupported,
                "config.json: attn_output_gate is false; this family gates its attention");
  }
}

// The rotated part of a head, from rope_parameters or, as older configs have it, the top level.
Result<kernels::RopeSpec> read_rope(const json& text, ConfigReader& reader, int head_dim) {
  static const json kNone = json::object();
  const json& nested = reader.has("rope_parameters") ? text.at("rope_parameters") : kNone;
  ConfigReader parameters(nested, "config.json: rope_parameters");
  const double partial =
      parameters.number("partial_rotary_factor", reader.number("partial_rotary_factor", 0.25));
  SLUICE_TRY_STATUS(parameters.status());
  SLUICE_TRY_STATUS(reader.status());
  const int dims = static_cast<int>(head_dim * partial);
  if (partial <= 0 || partial > 1 || dims < 2 || dims % 2 != 0) {
    return make_error(ErrorCode::kUnsupported,
                      "config.json: partial_rotary_factor {} of head_dim {} leaves {} rotated "
                      "dimensions; it must be an even number, at least 2",
                      partial,
                      head_dim,
                      dims);
  }
  return nn::rope_from_config(text, dims, 100000.0);
}

}  // namespace

int Qwen35Config::delta_layers() const {
  return static_cast<int>(std::count(linear_layer.begin(), linear_layer.end(), true));
}

Result<Qwen35Config> Qwen35Config::from_json(const json& config) {
  ConfigReader top(config, "config.json");
  Qwen35Config c;
  c.model_type = top.text("model_type");
  SLUICE_TRY_STATUS(top.status());
  if (c.model_type.ends_with("_text")) c.model_type.resize(c.model_type.size() - 5);
  const json& text = top.has("text_config") ? config.at("text_config") : config;

  ConfigReader reader(text, top.has("text_config") ? "config.json: text_config" : "config.json");
  c.hidden_size = reader.integer("hidden_size", 1, kMaxDim);
  c.num_layers = reader.integer("num_hidden_layers", 1, 10000);
  c.vocab_size = reader.integer("vocab_size", 1, kMaxDim);
  c.max_positions = reader.integer("max_position_embeddings", 1, 1 << 30, 131072);
  c.norm_eps = static_cast<float>(reader.number("rms_norm_eps", 1e-6));
  SLUICE_TRY_STATUS(reader.status());

  c.linear_layer = linear_layers(text, reader, c.num_layers);
  read_attention(reader, c);
  read_gated_delta(reader, c);
  read_experts(text, reader, c);
  if (std::count(c.moe_layer.begin(), c.moe_layer.end(), false) > 0) {
    c.intermediate_size = reader.integer("intermediate_size", 1, kMaxDim);
  }
  c.mtp_layers = reader.integer("mtp_num_hidden_layers", 0, 16, 0);
  const std::string activation = reader.text("hidden_act", "silu");
  if (activation != "silu") {
    reader.fail(ErrorCode::kUnsupported,
                fmt::format("config.json: hidden_act \"{}\" is not supported; supported is silu",
                            activation));
  }
  if (reader.has("tie_word_embeddings")) {
    c.tied_head = reader.boolean("tie_word_embeddings");
  } else if (top.has("tie_word_embeddings")) {
    c.tied_head = top.boolean("tie_word_embeddings");
  }
  SLUICE_TRY_STATUS(top.status());
  SLUICE_TRY_STATUS(reader.status());
  SLUICE_TRY(c.rope, read_rope(text, reader, c.head_dim));
  return c;
}

}  // namespace sluice::models
