#include "models/registry.h"

#include <algorithm>

#include "models/llama/llama.h"
#include "models/qwen3_5/qwen3_5.h"

namespace sluice::models {
namespace {

using LoadFunction = Result<std::unique_ptr<Model>> (*)(loader::Checkpoint&,
                                                        const kernels::Context&,
                                                        const ModelOptions&);

using FactsFunction = Result<ConfigFacts> (*)(const nlohmann::json& config);

struct Family {
  const char* model_type;
  LoadFunction load;
  FactsFunction facts;
};

// One line for each model_type, sorted. A static table, not self-registering objects: a static
// library may drop those.
constexpr Family kFamilies[] = {
    {"llama", LlamaModel::load, LlamaModel::facts},
    {"mistral", LlamaModel::load, LlamaModel::facts},
    {"qwen2", LlamaModel::load, LlamaModel::facts},
    {"qwen3", LlamaModel::load, LlamaModel::facts},
    {"qwen3_5", Qwen35Model::load, Qwen35Model::facts},
    {"qwen3_5_text", Qwen35Model::load, Qwen35Model::facts},
    {"qwen3_next", Qwen35Model::load, Qwen35Model::facts},
};

Result<const Family*> find_family(const nlohmann::json& config) {
  if (!config.contains("model_type") || !config.at("model_type").is_string()) {
    return make_error(ErrorCode::kCorruptFile, "config.json lacks the string \"model_type\"");
  }
  const auto type = config.at("model_type").get<std::string>();
  for (const auto& family : kFamilies) {
    if (type == family.model_type) return &family;
  }
  return make_error(ErrorCode::kUnsupported,
                    "model type \"{}\" is not supported; supported are {}",
                    type,
                    fmt::join(supported_model_types(), ", "));
}

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> types;
  for (const auto& family : kFamilies) types.push_back(family.model_type);
  return types;
}

Result<std::unique_ptr<Model>> load_model(loader::Checkpoint& checkpoint,
                                          const kernels::Context& context,
                                          const ModelOptions& options) {
  SLUICE_TRY(const auto* family, find_family(checkpoint.config));
  return family->load(checkpoint, context, options);
}

Result<ConfigFacts> config_facts(const nlohmann::json& config) {
  SLUICE_TRY(const auto* family, find_family(config));
  return family->facts(config);
}

}  // namespace sluice::models
