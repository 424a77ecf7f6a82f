#include "models/qwen3_5/weights.h"

#include <cmath>

namespace sluice::models {
namespace {

using Rows = std::vector<int32_t>;

// q_proj holds for each head its query rows, then its gate rows.
std::vector<Rows> query_and_gate(int heads, int head_dim) {
  std::vector<Rows> parts(2);
  for (int h = 0; h < heads; ++h) {
    for (int part = 0; part < 2; ++part) {
      for (int i = 0; i < head_dim; ++i) parts[part].push_back((2 * h + part) * head_dim + i);
    }
  }
  return parts;
}

// qwen3_next packs its projections by key head: of each head first sizes[0] rows of the first kind,
// then sizes[1] of the second, and so on. -> the rows of each kind, heads in order.
std::vector<Rows> packed_by_head(int heads, const std::vector<int>& sizes) {
  std::vector<Rows> kinds(sizes.size());
  int row = 0;
  for (int h = 0; h < heads; ++h) {
    for (size_t kind = 0; kind < sizes.size(); ++kind) {
      for (int i = 0; i < sizes[kind]; ++i) kinds[kind].push_back(row++);
    }
  }
  return kinds;
}

Rows joined(const std::vector<Rows>& kinds) {
  Rows rows;
  for (const auto& kind : kinds) rows.insert(rows.end(), kind.begin(), kind.end());
  return rows;
}

}  // namespace

std::optional<mx::array> Qwen35WeightReader::norm(const std::string& path, int size) {
  return reader_.vector(path, size, names_.norm_offset());
}

std::optional<kernels::ConvWeight> Qwen35WeightReader::convolution(const std::string& path) {
  const int channels = config_.conv_size(), taps = config_.conv_kernel;
  const mx::Shape shape = names_.raw ? mx::Shape{channels, 1, taps} : mx::Shape{channels, taps, 1};
  const auto stored = reader_.tensor(path + ".weight", shape);
  if (!stored) return std::nullopt;
  return kernels::ConvWeight(context_, mx::reshape(*stored, {channels, taps}));
}

std::optional<nn::GatedDeltaBlock> Qwen35WeightReader::gated_delta(const std::string& path) {
  const auto& c = config_;
  const int hidden = c.hidden_size, heads = c.value_heads;
  std::vector<kernels::LinearWeight> qkv_z, b_a;
  if (c.packed_projections()) {
    const int group = heads / c.key_heads;
    auto kinds = packed_by_head(c.key_heads,
                                {c.key_dim, c.key_dim, group * c.value_dim, group * c.value_dim});
    const Rows z = kinds.back();
    kinds.pop_back();
    const int rows = c.conv_size() + c.value_size();
    qkv_z = reader_.linear_parts(path + ".in_proj_qkvz", rows, hidden, false, {joined(kinds), z});
    b_a = reader_.linear_parts(path + ".in_proj_ba",
                               2 * heads,
                               hidden,
                               false,
                               packed_by_head(c.key_heads, {group, group}));
  } else {
    auto add = [&](std::vector<kernels::LinearWeight>& to, const char* name, int rows) {
      if (auto weight = reader_.linear(path + name, rows, hidden, false)) to.push_back(*weight);
    };
    add(qkv_z, ".in_proj_qkv", c.conv_size());
    add(qkv_z, ".in_proj_z", c.value_size());
    add(b_a, ".in_proj_b", heads);
    add(b_a, ".in_proj_a", heads);
  }
  auto conv = convolution(path + ".conv1d");
  auto a_log = reader_.tensor(path + ".A_log", {heads}, true);
  auto dt_bias = reader_.tensor(path + ".dt_bias", {heads});
  auto output_norm = reader_.vector(path + ".norm", c.value_dim);
  auto out = reader_.linear(path + ".out_proj", hidden, c.value_size(), false);
  if (!reader_.status().ok()) return std::nullopt;
  const double scale = std::pow(static_cast<double>(c.key_dim), -0.5);
  return nn::GatedDeltaBlock{qkv_z[0],
                             qkv_z[1],
                             b_a[0],
                             b_a[1],
                             *out,
                             *conv,
                             *a_log,
                             *dt_bias,
                             *output_norm,
                             {scale * scale, c.key_dim},
                             {scale, c.key_dim},
                             {c.key_heads, heads, c.key_dim, c.value_dim},
                             c.norm_eps};
}

std::optional<nn::AttentionBlock> Qwen35WeightReader::attention(const std::string& path) {
  const auto& c = config_;
  const int q_size = c.heads * c.head_dim, kv_size = c.kv_heads * c.head_dim;
  auto linear = [&](const char* name, int out, int in) {
    return reader_.linear(path + name, out, in, c.attention_bias);
  };
  auto query = reader_.linear_parts(path + ".q_proj",
                                    2 * q_size,
                                    c.hidden_size,
                                    c.attention_bias,
                                    query_and_gate(c.heads, c.head_dim));
  auto key = linear(".k_proj", kv_size, c.hidden_size);
  auto value = linear(".v_proj", kv_size, c.hidden_size);
  auto out = linear(".o_proj", c.hidden_size, q_size);
  nn::AttentionBlock block;
  block.q_norm = norm(path + ".q_norm", c.head_dim);
  block.k_norm = norm(path + ".k_norm", c.head_dim);
  if (!reader_.status().ok()) return std::nullopt;
  block.wq = query[0];
  block.wgate = query[1];
  block.wk = *key;
  block.wv = *value;
  block.wo = *out;
  block.norm_eps = c.norm_eps;
  block.heads = c.heads;
  block.kv_heads = c.kv_heads;
  block.head_dim = c.head_dim;
  block.rope = c.rope;
  block.scale = static_cast<float>(std::pow(static_cast<double>(c.head_dim), -0.5));
  return block;
}

std::optional<nn::GatedMlp> Qwen35WeightReader::mlp(const std::string& path) {
  const auto& c = config_;
  auto gate = reader_.linear(path + ".gate_proj", c.intermediate_size, c.hidden_size, false);
  auto up = reader_.linear(path + ".up_proj", c.intermediate_size, c.hidden_size, false);
  auto down = reader_.linear(path + ".down_proj", c.hidden_size, c.intermediate_size, false);
  if (!reader_.status().ok()) return std::nullopt;
  return nn::GatedMlp{*gate, *up, *down};
}

std::optional<Qwen35Layer> Qwen35WeightReader::layer(const std::string& path, bool linear) {
  auto input_norm = norm(path + ".input_layernorm", config_.hidden_size);
  std::optional<std::variant<nn::GatedDeltaBlock, nn::AttentionBlock>> mixer;
  if (linear) {
    if (auto block = gated_delta(path + ".linear_attn")) mixer = std::move(*block);
  } else {
    if (auto block = attention(path + ".self_attn")) mixer = std::move(*block);
  }
  auto post_norm = norm(path + ".post_attention_layernorm", config_.hidden_size);
  auto feed_forward = mlp(path + ".mlp");
  if (!reader_.status().ok()) return std::nullopt;
  return Qwen35Layer{*input_norm, *post_norm, std::move(*mixer), std::move(*feed_forward)};
}

std::optional<Qwen35Mtp> Qwen35WeightReader::mtp() {
  const int hidden = config_.hidden_size;
  auto embedding_norm = norm(names_.mtp + "pre_fc_norm_embedding", hidden);
  auto hidden_norm = norm(names_.mtp + "pre_fc_norm_hidden", hidden);
  auto fc = reader_.linear(names_.mtp + "fc", hidden, 2 * hidden, false);
  std::vector<Qwen35Layer> layers;
  for (int i = 0; i < config_.mtp_layers && reader_.status().ok(); ++i) {
    if (auto one = layer(fmt::format("{}layers.{}", names_.mtp, i), false)) layers.push_back(*one);
  }
  auto final_norm = norm(names_.mtp + "norm", hidden);
  if (!reader_.status().ok()) return std::nullopt;
  return Qwen35Mtp{*embedding_norm, *hidden_norm, *fc, std::move(layers), *final_norm};
}

}  // namespace sluice::models
