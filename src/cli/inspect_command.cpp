// sluice inspect: what a checkpoint is, or what this machine can do.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/text_model.h"
#include "engine/inspect.h"

namespace sluice::cli {
namespace {

struct InspectFlags {
  std::string model;
  bool machine = false;
  bool tensors = false;
  bool json = false;
};

// "92.1 MB", decimal as disks and bandwidths are.
std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Json model_json(const engine::ModelDescription& model, bool with_tensors) {
  Json json;
  json["path"] = model.path;
  json["format"] = model.format;
  json["family"] = model.family;
  json["supported"] = model.supported;
  if (!model.problem.empty()) json["problem"] = model.problem;
  json["num_layers"] = model.num_layers;
  json["attention_layers"] = model.attention_layers;
  json["hidden_size"] = model.hidden_size;
  json["heads"] = model.heads;
  json["kv_heads"] = model.kv_heads;
  json["head_dim"] = model.head_dim;
  json["vocab_size"] = model.vocab_size;
  json["context_tokens"] = model.context_tokens;
  json["parameters"] = model.parameters;
  json["file_bytes"] = model.file_bytes;
  json["weight_bytes_per_token"] = model.weight_bytes_per_token;
  json["cache_bytes_per_token"] = model.cache_bytes_per_token;
  json["cache_bytes_per_sequence"] = model.cache_bytes_per_sequence;
  json["eos_token_ids"] = model.eos_token_ids;
  json["chat_template"] = model.chat_template;
  json["modules"] = Json::array();
  for (const auto& module : model.modules) {
    json["modules"].push_back({{"name", module.name},
                               {"kind", module.kind},
                               {"shape", module.shape},
                               {"count", module.count},
                               {"activations", module.activations},
                               {"bytes", module.bytes}});
  }
  if (!with_tensors) return json;
  json["tensors"] = Json::array();
  for (const auto& tensor : model.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"kind", tensor.kind},
                               {"shape", tensor.shape},
                               {"bytes", tensor.bytes}});
  }
  return json;
}

void print_model(const engine::ModelDescription& model, bool with_tensors) {
  fmt::print("{}: {}\n", model.format, model.path);
  fmt::print("family         {}{}\n",
             model.family,
             model.supported ? "" : " (not supported by this build)");
  if (!model.problem.empty()) fmt::print("problem        {}\n", model.problem);
  fmt::print("layers         {}, {} of them attention, hidden size {}\n",
             model.num_layers,
             model.attention_layers,
             model.hidden_size);
  fmt::print("attention      {} heads, {} for keys and values, of {}\n",
             model.heads,
             model.kv_heads,
             model.head_dim);
  fmt::print("vocabulary     {}\n", model.vocab_size);
  fmt::print("context        {} tokens\n", model.context_tokens);
  fmt::print("parameters     {:.1f} M\n", static_cast<double>(model.parameters) / 1e6);
  fmt::print("files          {}\n", size_text(model.file_bytes));
  fmt::print("a token reads  {} of weights, and {} of cache for each token before it (float32)\n",
             size_text(model.weight_bytes_per_token),
             size_text(model.cache_bytes_per_token));
  if (model.cache_bytes_per_sequence > 0) {
    fmt::print("a sequence has {} of recurrent state, whatever its length\n",
               size_text(model.cache_bytes_per_sequence));
  }
  fmt::print("end tokens     {}\n", fmt::join(model.eos_token_ids, ", "));
  fmt::print("chat template  {}\n\n", model.chat_template ? "yes" : "no");
  fmt::print("{:<48} {:<26} {:<12} {:<16} {:>5} {:>10}\n",
             "module",
             "kind",
             "activations",
             "shape",
             "count",
             "size");
  for (const auto& module : model.modules) {
    fmt::print("{:<48} {:<26} {:<12} {:<16} {:>5} {:>10}\n",
               module.name,
               module.kind,
               module.activations,
               shape_text(module.shape),
               module.count,
               size_text(module.bytes));
  }
  if (!with_tensors) return;
  fmt::print("\n{:<54} {:<26} {:<16} {:>10}\n", "tensor", "kind", "shape", "size");
  for (const auto& tensor : model.tensors) {
    fmt::print("{:<54} {:<26} {:<16} {:>10}\n",
               tensor.name,
               tensor.kind,
               shape_text(tensor.shape),
               size_text(tensor.bytes));
  }
}

// Ops for which the first choice of implementations is the reference: the exactness contract is
// not claimed there.
std::vector<std::string> gaps(const engine::MachineDescription& machine) {
  std::vector<std::string> names;
  for (const auto& op : machine.ops) {
    if (op.backends.front() == "reference") names.push_back(op.op);
  }
  return names;
}

Json machine_json(const engine::MachineDescription& machine) {
  Json json;
  json["version"] = version_line();
  json["processor"] = machine.processor;
  json["memory_bytes"] = machine.memory_bytes;
  json["threads"] = machine.threads;
  json["isas"] = machine.isas;
  json["isa"] = machine.isa;
  json["activations"] = machine.activations;
  json["mlx_version"] = machine.mlx_version;
  json["mlx_library"] = machine.mlx_library;
  json["ops"] = Json::object();
  for (const auto& op : machine.ops) json["ops"][op.op] = op.backends;
  json["gaps"] = gaps(machine);
  json["families"] = machine.families;
  return json;
}

void print_machine(const engine::MachineDescription& machine) {
  fmt::print("{}\n", version_line());
  fmt::print("processor    {}\n", machine.processor);
  fmt::print("memory       {}\n", size_text(machine.memory_bytes));
  fmt::print("threads      {}\n", machine.threads);
  fmt::print("isa          {} (of {})\n", machine.isa, fmt::join(machine.isas, ", "));
  fmt::print("activations  {} by default\n", machine.activations);
  fmt::print("mlx          {}, {}\n", machine.mlx_version, machine.mlx_library);
  fmt::print("families     {}\n", fmt::join(machine.families, ", "));
  fmt::print("\n{:<12} implementations, best first\n", "op");
  for (const auto& op : machine.ops) {
    fmt::print("{:<12} {}\n", op.op, fmt::join(op.backends, ", "));
  }
  const auto names = gaps(machine);
  fmt::print("gaps (reference only, outside the exactness contract): {}\n",
             names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

Result<int> inspect(const InspectFlags& flags) {
  if (flags.machine) {
    const auto machine = engine::describe_machine();
    if (flags.json) {
      fmt::print("{}\n", machine_json(machine).dump(2));
    } else {
      print_machine(machine);
    }
    return kExitOk;
  }
  SLUICE_TRY(const auto model, engine::describe_model(flags.model));
  if (flags.json) {
    fmt::print("{}\n", model_json(model, flags.tensors).dump(2));
  } else {
    print_model(model, flags.tensors);
  }
  return kExitOk;
}

}  // namespace

void add_inspect_command(CLI::App& app, Runner& run) {
  auto flags = std::make_shared<InspectFlags>();
  auto* command = app.add_subcommand("inspect", "Describe a model, or this machine");
  auto* what = command->add_option_group("What");
  what->add_option("model", flags->model, "A .gguf file or an MLX safetensors folder");
  what->add_flag("--machine", flags->machine, "Processor, kernels, MLX, families");
  what->require_option(1);
  command->add_flag("--tensors", flags->tensors, "List every tensor");
  command->add_flag("--json", flags->json, "For programs");
  command->callback([flags, &run] { run = [flags] { return inspect(*flags); }; });
}

}  // namespace sluice::cli
