#include "models/qwen3_5/qwen3_5.h"

#include <algorithm>

#include "kernels/embedding/embedding.h"
#include "models/qwen3_5/weights.h"

namespace sluice::models {
namespace {

// From this many tokens on a pass is evaluated layer by layer, so that no more than a layer's
// temporaries exist at once; shorter ones (decode, verify) have no extra synchronisation.
constexpr int kLayerwiseTokens = 64;

cache::GatedDeltaLayout slot_layout(const Qwen35Config& c, mx::Dtype dtype) {
  return {c.delta_layers(),
          {c.key_heads, c.value_heads, c.key_dim, c.value_dim},
          c.conv_kernel,
          c.conv_size(),
          dtype};
}

}  // namespace

Result<std::unique_ptr<Model>> Qwen35Model::load(loader::Checkpoint& checkpoint,
                                                 const kernels::Context& context,
                                                 const ModelOptions& options) {
  std::unique_ptr<Qwen35Model> model(new Qwen35Model(context));
  SLUICE_TRY(model->config_, Qwen35Config::from_json(checkpoint.config));
  const auto& c = model->config_;
  if (c.experts > 0) {
    return make_error(ErrorCode::kUnsupported,
                      "config.json: {} experts; models with a mixture of experts are not supported "
                      "yet",
                      c.experts);
  }
  SLUICE_TRY(const auto dtype, computing_dtype(context, options, checkpoint));
  SLUICE_TRY_STATUS(model->read_weights(checkpoint, dtype));

  auto& traits = model->traits_;
  traits.family = c.model_type;
  traits.vocab_size = c.vocab_size;
  traits.hidden_size = c.hidden_size;
  traits.num_layers = c.num_layers;
  traits.max_positions = c.max_positions;
  model->allocate_storage(c.num_layers - c.delta_layers(),
                          cache_positions(options, c.max_positions),
                          c.kv_heads,
                          c.head_dim,
                          c.head_dim,
                          traits.activation_dtype);
  model->allocate_slots(slot_layout(c, traits.activation_dtype));
  return std::unique_ptr<Model>(std::move(model));
}

Result<ConfigFacts> Qwen35Model::facts(const nlohmann::json& config) {
  SLUICE_TRY(const auto c, Qwen35Config::from_json(config));
  SLUICE_TRY(const auto context, kernels::Context::create({}));
  ConfigFacts facts;
  facts.num_layers = c.num_layers;
  facts.attention_layers = c.num_layers - c.delta_layers();
  facts.hidden_size = c.hidden_size;
  facts.heads = c.heads;
  facts.kv_heads = c.kv_heads;
  facts.head_dim = c.head_dim;
  facts.vocab_size = c.vocab_size;
  facts.max_positions = c.max_positions;
  facts.slot_bytes_per_sequence = slot_layout(c, mx::float32).nbytes(*context);
  return facts;
}

Status Qwen35Model::read_weights(loader::Checkpoint& checkpoint, std::optional<mx::Dtype> dtype) {
  const auto& c = config_;
  auto& weights = checkpoint.weights;
  const auto names = Qwen35Names::find(weights);
  nn::WeightReader reader(context_, weights, dtype);
  Qwen35WeightReader parts(context_, reader, c, names);
  // The vision tower of the same checkpoint is another model's.
  weights.ignore_if([](const std::string& name) {
    return name.starts_with("vision_tower") || name.starts_with("model.visual");
  });

  auto embedding = reader.linear(names.model + "embed_tokens", c.vocab_size, c.hidden_size, false);
  int counts[2] = {0, 0};
  for (int i = 0; i < c.num_layers && reader.status().ok(); ++i) {
    place_.push_back(counts[c.linear_layer[i]]++);
    if (auto layer = parts.layer(names.layer(i), c.linear_layer[i])) {
      layers_.push_back(std::move(*layer));
    }
  }
  final_norm_ = reader.vector(names.model + "norm", c.hidden_size, names.norm_offset());
  if (!c.tied_head.value_or(!weights.contains(names.head + ".weight"))) {
    head_ = reader.linear(names.head, c.vocab_size, c.hidden_size, false);
  } else {
    weights.ignore_if([&](const std::string& name) { return name.starts_with(names.head + "."); });
  }
  if (!names.mtp.empty() && c.mtp_layers > 0) {
    mtp_ = parts.mtp();
  } else if (!names.mtp.empty()) {
    // A config that counts no layers of it, as some conversions leave it behind.
    weights.ignore_if([&](const std::string& name) { return name.starts_with(names.mtp); });
  }
  SLUICE_TRY_STATUS(reader.status());
  SLUICE_TRY_STATUS(weights.finish());

  embedding_ = *embedding;
  traits_.weight_bytes = reader.bytes();
  traits_.activation_dtype = reader.activation_dtype();
  return {};
}

mx::array Qwen35Model::layer_forward(int index, const mx::array& x, const PassRows& rows) {
  const auto& layer = layers_[index];
  const int place = place_[index];
  const auto normed = kernels::rms_norm(context_, x, layer.input_norm, config_.norm_eps);
  auto mixed = config_.linear_layer[index]
                   ? std::get<nn::GatedDeltaBlock>(layer.mixer)
                         .forward(context_, normed, rows.delta_layer(place))
                   : std::get<nn::AttentionBlock>(layer.mixer)
                         .forward(context_, normed, storage_[place], rows.attention);
  const auto h = mx::add(x, mixed);
  const auto inner = kernels::rms_norm(context_, h, layer.post_attention_norm, config_.norm_eps);
  return mx::add(h, layer.mlp.forward(context_, inner));
}

void Qwen35Model::evaluate_layer(const mx::array& hidden, int index, const PassRows& rows) {
  std::vector<mx::array> arrays{hidden};
  if (context_.reference()) {
    // What the layer left in the caches is no ancestor of hidden: lazy, it would keep the layer's
    // temporaries alive.
    const int place = place_[index];
    if (config_.linear_layer[index]) {
      for (auto* sequence : rows.sequences) {
        arrays.push_back(sequence->slot(place).tail());
        arrays.push_back(sequence->slot(place).state());
      }
    } else {
      arrays.push_back(storage_[place].keys);
      arrays.push_back(storage_[place].values);
    }
  }
  mx::eval(std::move(arrays));
}

mx::array Qwen35Model::layers_forward(const std::vector<int32_t>& tokens, const PassRows& rows) {
  auto h = kernels::embedding(context_, tokens, embedding_);
  for (int i = 0; i < config_.num_layers; ++i) {
    h = layer_forward(i, h, rows);
    if (tokens.size() >= kLayerwiseTokens) evaluate_layer(h, i, rows);
  }
  return h;
}

mx::array Qwen35Model::head_forward(const mx::array& hidden) {
  auto x = kernels::rms_norm(context_, hidden, *final_norm_, config_.norm_eps);
  return kernels::linear(context_, x, head_ ? *head_ : embedding_);
}

}  // namespace sluice::models
