#include "engine/inspect.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <tuple>

#include "base/thread_pool.h"
#include "kernels/context.h"
#include "loader/checkpoint.h"
#include "mlx/version.h"
#include "models/registry.h"

namespace sluice::engine {
namespace {

// "model.layers.12.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight".
std::string module_pattern(const std::string& name) {
  std::string pattern;
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const auto part = name.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) {
      return std::isdigit(static_cast<unsigned char>(c));
    });
    if (begin > 0) pattern += '.';
    pattern += number ? "*" : part;
    begin = end + 1;
  }
  return pattern;
}

// Whether a linear layer's weight of this kind is quantized: "Q4_1", "affine 4-bit group 32".
bool quantized(const std::string& kind) {
  return kind.starts_with("affine ") || kind.starts_with("Q");
}

std::string activations_of(const TensorDescription& tensor, bool tied_head) {
  const auto kind = kernels::module_kind(tensor.name, tied_head);
  if (tensor.shape.size() != 2 || !tensor.name.ends_with(".weight")) return "";
  if (kind == kernels::ModuleKind::kOther && tensor.name.find("embed") != std::string::npos) {
    return "";
  }
  return kernels::activations_name(quantized(tensor.kind) ? kernels::ActivationPlan().of(kind)
                                                          : kernels::Activations::kFloat32);
}

std::vector<ModuleSummary> summarize(const std::vector<TensorDescription>& tensors,
                                     bool tied_head) {
  std::vector<ModuleSummary> modules;
  std::map<std::tuple<std::string, std::string, std::vector<int64_t>>, size_t> index;
  for (const auto& tensor : tensors) {
    const auto pattern = module_pattern(tensor.name);
    const auto [entry, is_new] =
        index.try_emplace({pattern, tensor.kind, tensor.shape}, modules.size());
    if (is_new) {
      modules.push_back(
          {pattern, tensor.kind, tensor.shape, 0, 0, activations_of(tensor, tied_head)});
    }
    auto& module = modules[entry->second];
    ++module.count;
    module.bytes += tensor.bytes;
  }
  return modules;
}

// Families that this build does not run keep their numbers at 0.
void read_config(const nlohmann::json& config, ModelDescription& model) {
  model.family = config.at("model_type").get<std::string>();
  const auto families = models::supported_model_types();
  model.supported = std::find(families.begin(), families.end(), model.family) != families.end();
  const auto facts = models::config_facts(config);
  if (!facts.ok()) {
    model.problem = facts.error().message;
    return;
  }
  model.num_layers = facts->num_layers;
  model.attention_layers = facts->attention_layers;
  model.hidden_size = facts->hidden_size;
  model.heads = facts->heads;
  model.kv_heads = facts->kv_heads;
  model.head_dim = facts->head_dim;
  model.vocab_size = facts->vocab_size;
  model.context_tokens = facts->max_positions;
  model.cache_bytes_per_token =
      uint64_t{2} * sizeof(float) * facts->attention_layers * facts->kv_heads * facts->head_dim;
  model.cache_bytes_per_sequence = facts->slot_bytes_per_sequence;
}

uint64_t elements(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const auto size : shape) count *= static_cast<uint64_t>(size);
  return count;
}

void read_tensors(const loader::WeightMap& weights, ModelDescription& model) {
  const bool tied =
      !weights.contains("lm_head.weight") && !weights.contains("language_model.lm_head.weight");
  for (const auto& tensor : weights.list()) {
    model.tensors.push_back({tensor.name, tensor.kind, tensor.shape, tensor.bytes});
    model.parameters += elements(tensor.shape);
    // Not read by a plain step: the head for drafts, the vision tower.
    if (tensor.name.find("mtp.") != std::string::npos ||
        tensor.name.find("visual.") != std::string::npos) {
      continue;
    }
    const bool embedding = tensor.name.find("embed_tokens.") != std::string::npos;
    const bool one_row = embedding && !tied && !tensor.shape.empty() && tensor.shape[0] > 0;
    model.weight_bytes_per_token +=
        one_row ? tensor.bytes / static_cast<uint64_t>(tensor.shape[0]) : tensor.bytes;
  }
  model.modules = summarize(model.tensors, tied);
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string path_of_mlx() {
  Dl_info info{};
  const auto* address = reinterpret_cast<const void*>(&mx::version);
  return dladdr(address, &info) != 0 && info.dli_fname ? info.dli_fname : "unknown";
}

}  // namespace

Result<ModelDescription> describe_model(const std::filesystem::path& path) {
  try {
    SLUICE_TRY(const auto checkpoint, loader::open_checkpoint(path));
    ModelDescription model;
    model.path = path.string();
    model.format = checkpoint.format;
    model.file_bytes = checkpoint.file_bytes;
    model.eos_token_ids = checkpoint.eos_token_ids;
    model.chat_template = checkpoint.chat_template.has_value();
    read_config(checkpoint.config, model);
    read_tensors(checkpoint.weights, model);
    return model;
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kInternal, "reading {} failed: {}", path.string(), e.what());
  }
}

MachineDescription describe_machine() {
  MachineDescription machine;
  machine.processor = processor_name();
  machine.threads = ThreadPool::default_size();
  for (const auto isa : kernels::supported_isas()) machine.isas.push_back(kernels::isa_name(isa));
  machine.isa = kernels::isa_name(kernels::best_isa());
  machine.activations = kernels::ActivationPlan().describe();
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) machine.memory_bytes = static_cast<uint64_t>(pages) * page;
  machine.mlx_version = mx::version();
  machine.mlx_library = path_of_mlx();
  // kernels::dispatch takes an own kernel and a reference of every op, so none can lack either.
  for (int i = 0; i < kernels::kNumOps; ++i) {
    machine.ops.push_back({kernels::op_name(static_cast<kernels::Op>(i)),
                           {kernels::backend_name(kernels::Backend::kCpu),
                            kernels::backend_name(kernels::Backend::kReference)}});
  }
  machine.families = models::supported_model_types();
  return machine;
}

}  // namespace sluice::engine
