#include "models/llama/llama.h"

#include <algorithm>
#include <cmath>

#include "kernels/embedding/embedding.h"
#include "kernels/rms_norm/rms_norm.h"
#include "nn/weight_reader.h"

namespace sluice::models {
namespace {

nn::AttentionBlock read_attention(nn::WeightReader& reader,
                                  const LlamaConfig& c,
                                  const std::string& path) {
  nn::AttentionBlock block;
  const int q_size = c.heads * c.head_dim, kv_size = c.kv_heads * c.head_dim;
  auto linear = [&](const char* name, int out, int in, bool bias) {
    return reader.linear(path + name, out, in, bias).value_or(kernels::LinearWeight{});
  };
  block.wq = linear(".q_proj", q_size, c.hidden_size, c.qkv_bias);
  block.wk = linear(".k_proj", kv_size, c.hidden_size, c.qkv_bias);
  block.wv = linear(".v_proj", kv_size, c.hidden_size, c.qkv_bias);
  block.wo = linear(".o_proj", c.hidden_size, q_size, c.out_bias);
  if (c.qk_norm) {
    block.q_norm = reader.vector(path + ".q_norm", c.head_dim);
    block.k_norm = reader.vector(path + ".k_norm", c.head_dim);
  }
  block.norm_eps = c.norm_eps;
  block.heads = c.heads;
  block.kv_heads = c.kv_heads;
  block.head_dim = c.head_dim;
  block.rope = c.rope;
  block.scale = static_cast<float>(std::pow(static_cast<double>(c.head_dim), -0.5));
  return block;
}

nn::GatedMlp read_mlp(nn::WeightReader& reader, const LlamaConfig& c, const std::string& path) {
  auto linear = [&](const char* name, int out, int in) {
    return reader.linear(path + name, out, in, c.mlp_bias).value_or(kernels::LinearWeight{});
  };
  return {linear(".gate_proj", c.intermediate_size, c.hidden_size),
          linear(".up_proj", c.intermediate_size, c.hidden_size),
          linear(".down_proj", c.hidden_size, c.intermediate_size)};
}

}  // namespace

Result<std::unique_ptr<Model>> LlamaModel::load(loader::Checkpoint& checkpoint,
                                                const kernels::Context& context,
                                                const ModelOptions& options) {
  std::unique_ptr<LlamaModel> model(new LlamaModel(context));
  SLUICE_TRY(model->config_, LlamaConfig::from_json(checkpoint.config));
  const auto& c = model->config_;

  SLUICE_TRY(const auto dtype, computing_dtype(context, options, checkpoint));
  SLUICE_TRY_STATUS(model->read_weights(checkpoint, dtype));

  auto& traits = model->traits_;
  traits.family = c.model_type;
  traits.vocab_size = c.vocab_size;
  traits.hidden_size = c.hidden_size;
  traits.num_layers = c.num_layers;
  traits.max_positions = c.max_positions;
  model->allocate_storage(c.num_layers,
                          cache_positions(options, c.max_positions),
                          c.kv_heads,
                          c.head_dim,
                          c.head_dim,
                          traits.activation_dtype);
  return std::unique_ptr<Model>(std::move(model));
}

Result<ConfigFacts> LlamaModel::facts(const nlohmann::json& config) {
  SLUICE_TRY(const auto c, LlamaConfig::from_json(config));
  ConfigFacts facts;
  facts.num_layers = facts.attention_layers = c.num_layers;
  facts.hidden_size = c.hidden_size;
  facts.heads = c.heads;
  facts.kv_heads = c.kv_heads;
  facts.head_dim = c.head_dim;
  facts.vocab_size = c.vocab_size;
  facts.max_positions = c.max_positions;
  return facts;
}

Status LlamaModel::read_weights(loader::Checkpoint& checkpoint, std::optional<mx::Dtype> dtype) {
  const auto& c = config_;
  auto& weights = checkpoint.weights;
  nn::WeightReader reader(context_, weights, dtype);
  // Old exports carry the rotary table; it follows from the config.
  weights.ignore_if([](const std::string& name) {
    return name.find("rotary_emb.inv_freq") != std::string::npos;
  });

  auto embedding = reader.linear("model.embed_tokens", c.vocab_size, c.hidden_size, false);
  for (int i = 0; i < c.num_layers && reader.status().ok(); ++i) {
    const std::string path = fmt::format("model.layers.{}", i);
    auto input_norm = reader.vector(path + ".input_layernorm", c.hidden_size);
    auto attention = read_attention(reader, c, path + ".self_attn");
    auto post_norm = reader.vector(path + ".post_attention_layernorm", c.hidden_size);
    auto mlp = read_mlp(reader, c, path + ".mlp");
    if (!reader.status().ok()) break;
    layers_.push_back({*input_norm, *post_norm, std::move(attention), std::move(mlp)});
  }
  final_norm_ = reader.vector("model.norm", c.hidden_size);
  if (!c.tied_head.value_or(!weights.contains("lm_head.weight"))) {
    head_ = reader.linear("lm_head", c.vocab_size, c.hidden_size, false);
  } else {
    weights.ignore_if([](const std::string& name) { return name.starts_with("lm_head."); });
  }
  SLUICE_TRY_STATUS(reader.status());
  SLUICE_TRY_STATUS(weights.finish());

  embedding_ = *embedding;
  traits_.weight_bytes = reader.bytes();
  traits_.activation_dtype = reader.activation_dtype();
  return {};
}

mx::array LlamaModel::layers_forward(const std::vector<int32_t>& tokens, const PassRows& rows) {
  auto h = kernels::embedding(context_, tokens, embedding_);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    auto x = kernels::rms_norm(context_, h, layer.input_norm, config_.norm_eps);
    h = mx::add(h, layer.attention.forward(context_, x, storage_[i], rows.attention));
    x = kernels::rms_norm(context_, h, layer.post_attention_norm, config_.norm_eps);
    h = mx::add(h, layer.mlp.forward(context_, x));
  }
  return h;
}

mx::array LlamaModel::head_forward(const mx::array& hidden) {
  auto x = kernels::rms_norm(context_, hidden, *final_norm_, config_.norm_eps);
  return kernels::linear(context_, x, head_ ? *head_ : embedding_);
}

}  // namespace sluice::models
