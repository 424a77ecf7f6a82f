#include "loader/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

namespace sluice::loader {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMaxHeadDim = 1 << 16;

struct Family {
  std::string_view architecture;  // GGUF's name and Hugging Face's model_type
  bool interleaved_rope;          // llama.cpp permuted its q and k rows
};
// Mistral files call themselves llama. qwen2's and qwen3's rope pairs (i, i + dims / 2) in both
// worlds, so their rows were left alone.
constexpr std::array<Family, 3> kFamilies = {{{"llama", true}, {"qwen2", false}, {"qwen3", false}}};

const Family* find_family(std::string_view architecture) {
  for (const auto& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

const GgufTensor* find_tensor(const GgufFile& file, std::string_view name) {
  for (const auto& tensor : file.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// One architecture's metadata, with keys below "<architecture>.".
class ArchitectureReader {
 public:
  ArchitectureReader(const GgufFile& file, std::string_view architecture)
      : file_(file), metadata_(file.metadata), prefix_(fmt::format("{}.", architecture)) {}

  Result<nlohmann::json> read() {
    SLUICE_TRY_STATUS(refuse_foreign_settings());
    SLUICE_TRY_STATUS(read_sizes());
    SLUICE_TRY_STATUS(read_rope());
    const auto* embedding = find_tensor(file_, "token_embd.weight");
    if (!embedding || embedding->shape.size() != 2) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: has no matrix token_embd.weight; a vocabulary alone is no model",
                        metadata_.file_name());
    }
    config_["vocab_size"] = embedding->shape[0];
    config_["tie_word_embeddings"] = find_tensor(file_, "output.weight") == nullptr;
    config_["attention_bias"] = find_tensor(file_, "blk.0.attn_q.bias") != nullptr;
    config_["mlp_bias"] = find_tensor(file_, "blk.0.ffn_up.bias") != nullptr;
    config_["hidden_act"] = "silu";
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  Error unsupported(std::string_view name, std::string_view why) const {
    return make_error(
        ErrorCode::kUnsupported, "{}: metadata '{}' {}", metadata_.file_name(), key(name), why);
  }

  // An integer, or an array of one integer per layer that are all the same.
  Result<std::optional<int64_t>> uniform_integer(std::string_view name) const {
    const GgufValue* value = metadata_.find(key(name));
    if (!value || !std::holds_alternative<GgufArray>(*value)) return metadata_.integer(key(name));
    SLUICE_TRY(const auto values, metadata_.integers(key(name)));
    if (!values || values->empty() || std::any_of(values->begin(), values->end(), [&](int64_t one) {
          return one != values->front();
        })) {
      return unsupported(name, "differs from layer to layer, which this family cannot have");
    }
    return std::optional(values->front());
  }

  Result<int64_t> require_size(std::string_view name) const {
    SLUICE_TRY(const auto value, uniform_integer(name));
    if (!value || *value <= 0 || *value > (int64_t{1} << 30)) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: metadata '{}' must be there and positive",
                        metadata_.file_name(),
                        key(name));
    }
    return *value;
  }

  // Settings that change the computation and that these families do not have: better refused than
  // ignored. Neutral values pass.
  Status refuse_foreign_settings() const {
    for (const char* name : {"expert_count",
                             "attn_logit_softcapping",
                             "final_logit_softcapping",
                             "attention.max_alibi_bias",
                             "attention.clamp_kqv"}) {
      SLUICE_TRY(const auto value, metadata_.number(key(name)));
      if (value && *value != 0) return unsupported(name, "is not supported in this family");
    }
    for (const char* name : {"logit_scale", "residual_scale", "embedding_scale"}) {
      SLUICE_TRY(const auto value, metadata_.number(key(name)));
      if (value && *value != 1 && *value != 0) {
        return unsupported(name, "is not supported in this family");
      }
    }
    SLUICE_TRY(const auto causal, metadata_.boolean(key("attention.causal")));
    if (causal && !*causal) return unsupported("attention.causal", "is false: no language model");
    return {};
  }

  Status read_sizes() {
    SLUICE_TRY(config_["num_hidden_layers"], require_size("block_count"));
    SLUICE_TRY(config_["hidden_size"], require_size("embedding_length"));
    SLUICE_TRY(config_["intermediate_size"], require_size("feed_forward_length"));
    SLUICE_TRY(config_["max_position_embeddings"], require_size("context_length"));
    SLUICE_TRY(const int64_t heads, require_size("attention.head_count"));
    SLUICE_TRY(const auto kv_heads, uniform_integer("attention.head_count_kv"));
    config_["num_attention_heads"] = heads;
    config_["num_key_value_heads"] = kv_heads.value_or(heads);
    SLUICE_TRY(config_["rms_norm_eps"],
               metadata_.require_number(key("attention.layer_norm_rms_epsilon")));

    const auto hidden = config_["hidden_size"].get<int64_t>();
    SLUICE_TRY(const auto key_length, uniform_integer("attention.key_length"));
    SLUICE_TRY(const auto value_length, uniform_integer("attention.value_length"));
    head_dim_ = key_length.value_or(hidden / heads);
    if (head_dim_ <= 0 || head_dim_ % 2 != 0 || head_dim_ > kMaxHeadDim) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: heads have {} dimensions; rope needs a (sane) even number",
                        metadata_.file_name(),
                        head_dim_);
    }
    if (value_length && *value_length != head_dim_) {
      return unsupported("attention.value_length", "differs from the key length");
    }
    config_["head_dim"] = head_dim_;
    SLUICE_TRY(const auto scale, metadata_.number(key("attention.scale")));
    if (scale && *scale != 0 && std::abs(*scale * std::sqrt(double(head_dim_)) - 1) > 1e-3) {
      return unsupported("attention.scale", "is not 1 / sqrt(head size)");
    }
    SLUICE_TRY(const auto window, metadata_.integer(key("attention.sliding_window")));
    if (window && *window > 0) {
      config_["sliding_window"] = *window;
      // Among the files that call themselves llama only Mistral has a window.
      if (prefix_ == "llama.") {
        config_["model_type"] = "mistral";
      } else {
        config_["use_sliding_window"] = true;
      }
    }
    return {};
  }

  Status read_rope() {
    SLUICE_TRY(const auto base, metadata_.number(key("rope.freq_base")));
    rope_base_ = base.value_or(10000.0);  // llama.cpp's default
    config_["rope_theta"] = rope_base_;
    SLUICE_TRY(const auto dims, uniform_integer("rope.dimension_count"));
    if (dims && *dims != head_dim_) {
      return unsupported("rope.dimension_count", "is not the head size: partial rope");
    }
    SLUICE_TRY(const auto type, metadata_.string(key("rope.scaling.type")));
    SLUICE_TRY(const auto legacy, metadata_.number(key("rope.scale_linear")));
    SLUICE_TRY(auto factor, metadata_.number(key("rope.scaling.factor")));
    if (!factor) factor = legacy;
    const std::string_view kind =
        type.value_or(factor && *factor != 1 && *factor != 0 ? std::string_view("linear")
                                                             : std::string_view("none"));
    if (kind == "linear" || kind == "yarn") {
      if (!factor || !(*factor > 0)) {
        return make_error(ErrorCode::kCorruptFile,
                          "{}: {} rope scaling has no positive '{}'",
                          metadata_.file_name(),
                          kind,
                          key("rope.scaling.factor"));
      }
      config_["rope_scaling"] = {{"rope_type", kind}, {"factor", *factor}};
      if (kind == "yarn") SLUICE_TRY_STATUS(read_yarn(config_["rope_scaling"]));
    } else if (kind != "none") {
      return unsupported("rope.scaling.type",
                         fmt::format("is '{}'; sluice knows linear, yarn and llama3", kind));
    }
    const auto* factors = find_tensor(file_, "rope_freqs.weight");
    return factors ? read_rope_factors(*factors) : Status();
  }

  Status read_yarn(nlohmann::json& scaling) const {
    SLUICE_TRY(scaling["original_max_position_embeddings"],
               metadata_.require_integer(key("rope.scaling.original_context_length")));
    const std::pair<const char*, const char*> kOptional[] = {
        {"rope.scaling.yarn_beta_fast", "beta_fast"}, {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    for (const auto& [name, hf_name] : kOptional) {
      SLUICE_TRY(const auto value, metadata_.number(key(name)));
      if (value) scaling[hf_name] = *value;
    }
    // 1 is what the formula has anyhow.
    for (const char* name : {"rope.scaling.attn_factor",
                             "rope.scaling.yarn_attn_factor",
                             "rope.scaling.yarn_ext_factor"}) {
      SLUICE_TRY(const auto value, metadata_.number(key(name)));
      if (value && *value != 1) return unsupported(name, "is not supported in this family");
    }
    SLUICE_TRY(const auto multiplier, metadata_.number(key("rope.scaling.yarn_log_multiplier")));
    if (multiplier && *multiplier != 0) {
      return unsupported("rope.scaling.yarn_log_multiplier", "is not supported in this family");
    }
    return {};
  }

  // llama3's scaling divides each frequency by a factor that the converter computed and stored; the
  // parameters that it came from are not in the file, but all releases used 1, 4 and 8192.
  Status read_rope_factors(const GgufTensor& tensor) {
    if (tensor.type != GgmlType::kF32 || tensor.shape.size() != 1 ||
        tensor.shape[0] != head_dim_ / 2) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: rope_freqs.weight must be {} float32 values",
                        metadata_.file_name(),
                        head_dim_ / 2);
    }
    std::vector<float> factors(head_dim_ / 2);
    std::memcpy(factors.data(), tensor.data.data(), factors.size() * sizeof(float));
    const double factor = *std::max_element(factors.begin(), factors.end());
    if (std::all_of(factors.begin(), factors.end(), [](float one) { return one == 1; })) return {};
    constexpr double kLow = 1, kHigh = 4, kOldContext = 8192;
    bool matches = std::isfinite(factor) && factor > 1 && !config_.contains("rope_scaling");
    for (size_t i = 0; matches && i < factors.size(); ++i) {
      const double wavelength = 2 * kPi * std::pow(rope_base_, 2.0 * double(i) / double(head_dim_));
      const double smooth =
          std::clamp((kOldContext / wavelength - kLow) / (kHigh - kLow), 0.0, 1.0);
      const double expected = 1 / ((1 - smooth) / factor + smooth);
      matches = std::abs(factors[i] - expected) <= 1e-4 * expected;
    }
    if (!matches) {
      return make_error(ErrorCode::kUnsupported,
                        "{}: rope_freqs.weight is not Llama 3's scaling, the only one that sluice "
                        "knows in this form",
                        metadata_.file_name());
    }
    config_["rope_scaling"] = {{"rope_type", "llama3"},
                               {"factor", factor},
                               {"low_freq_factor", kLow},
                               {"high_freq_factor", kHigh},
                               {"original_max_position_embeddings", int64_t(kOldContext)}};
    return {};
  }

  const GgufFile& file_;
  const GgufMetadata& metadata_;
  std::string prefix_;
  int64_t head_dim_ = 0;
  double rope_base_ = 0;
  nlohmann::json config_ = nlohmann::json::object();
};

// "blk.12.attn_q.weight" -> ("12", "attn_q", "weight"); nullopt for another form.
struct BlockName {
  std::string_view layer, part, kind;
};
std::optional<BlockName> split_block_name(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  name.remove_prefix(4);
  const size_t first = name.find('.');
  const size_t last = name.rfind('.');
  if (first == std::string_view::npos || first == 0 || last <= first) return std::nullopt;
  const std::string_view layer = name.substr(0, first);
  const bool leading_zero = layer.size() > 1 && layer.front() == '0';
  if (leading_zero || layer.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  return BlockName{layer, name.substr(first + 1, last - first - 1), name.substr(last + 1)};
}

constexpr std::pair<std::string_view, std::string_view> kBlockParts[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

}  // namespace

std::vector<std::string> supported_gguf_architectures() {
  std::vector<std::string> names;
  for (const auto& family : kFamilies) names.emplace_back(family.architecture);
  return names;
}

Result<nlohmann::json> config_from_gguf(const GgufFile& file) {
  SLUICE_TRY(const auto architecture, file.metadata.require_string("general.architecture"));
  if (!find_family(architecture)) {
    return make_error(ErrorCode::kUnsupported,
                      "{}: has the architecture '{}'; of GGUF files sluice reads {}",
                      file.metadata.file_name(),
                      architecture,
                      fmt::join(supported_gguf_architectures(), ", "));
  }
  SLUICE_TRY(auto config, ArchitectureReader(file, architecture).read());
  if (!config.contains("model_type")) config["model_type"] = architecture;
  return config;
}

Result<GgufTensorRole> gguf_tensor_role(const GgufTensor& tensor,
                                        std::string_view architecture,
                                        const nlohmann::json& config) {
  GgufTensorRole role;
  role.name = tensor.name;
  role.folded_into_config = tensor.name == "rope_freqs.weight";
  for (const auto& [name, hf_name] : kOtherNames) {
    if (tensor.name == name) role.name = hf_name;
  }
  const auto block = split_block_name(tensor.name);
  if (!block) return role;
  for (const auto& [part, hf_part] : kBlockParts) {
    if (block->part != part) continue;
    role.name = fmt::format("model.layers.{}.{}.{}", block->layer, hf_part, block->kind);
    const Family* family = find_family(architecture);
    if (!family || !family->interleaved_rope || (part != "attn_q" && part != "attn_k")) break;
    role.interleaved_head_rows = config.at("head_dim").get<int>();
    if (tensor.shape.front() % role.interleaved_head_rows != 0) {
      return make_error(ErrorCode::kCorruptFile,
                        "tensor {} has {} rows, no multiple of the head size {}",
                        tensor.name,
                        tensor.shape.front(),
                        role.interleaved_head_rows);
    }
  }
  return role;
}

}  // namespace sluice::loader
