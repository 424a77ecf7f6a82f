#include "kernels/activation_plan.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice::kernels {

namespace {

constexpr std::pair<ModuleKind, const char*> kKinds[] = {{ModuleKind::kQkv, "qkv"},
                                                         {ModuleKind::kOut, "out"},
                                                         {ModuleKind::kGateUp, "gate_up"},
                                                         {ModuleKind::kDown, "down"},
                                                         {ModuleKind::kHead, "head"},
                                                         {ModuleKind::kOther, "other"}};

constexpr std::pair<std::string_view, ModuleKind> kProjections[] = {
    {"q_proj", ModuleKind::kQkv},
    {"k_proj", ModuleKind::kQkv},
    {"v_proj", ModuleKind::kQkv},
    {"qkv_proj", ModuleKind::kQkv},
    // Gated delta's inputs; in_proj_a and in_proj_b, a few rows that steer the recurrence, are not
    // worth the error.
    {"in_proj_qkv", ModuleKind::kQkv},
    {"in_proj_qkvz", ModuleKind::kQkv},
    {"in_proj_z", ModuleKind::kQkv},
    {"o_proj", ModuleKind::kOut},
    {"out_proj", ModuleKind::kOut},
    {"gate_proj", ModuleKind::kGateUp},
    {"up_proj", ModuleKind::kGateUp},
    {"gate_up_proj", ModuleKind::kGateUp},
    {"down_proj", ModuleKind::kDown},
    {"lm_head", ModuleKind::kHead}};

std::optional<Activations> parse_choice(std::string_view text) {
  if (text == "int8") return Activations::kInt8;
  if (text == "f32" || text == "float32") return Activations::kFloat32;
  return std::nullopt;
}

const char* choice_name(Activations activations) {
  return activations == Activations::kInt8 ? "int8" : "f32";
}

Result<ModuleKind> parse_kind(std::string_view text) {
  for (const auto& [kind, name] : kKinds) {
    if (kind != ModuleKind::kOther && text == name) return kind;
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "unknown module kind '{}' for activations; known are: qkv, out, gate_up, down, "
                    "head",
                    text);
}

}  // namespace

const char* module_kind_name(ModuleKind kind) {
  for (const auto& [entry, name] : kKinds) {
    if (entry == kind) return name;
  }
  return "other";
}

ModuleKind module_kind(std::string_view path, bool tied_head) {
  constexpr std::string_view kSuffix = ".weight";
  if (path.ends_with(kSuffix)) path.remove_suffix(kSuffix.size());
  const auto name = path.substr(path.rfind('.') + 1);  // npos + 1 is 0
  for (const auto& [projection, kind] : kProjections) {
    if (name == projection) return kind;
  }
  return tied_head && name == "embed_tokens" ? ModuleKind::kHead : ModuleKind::kOther;
}

const char* activations_name(Activations activations) {
  return activations == Activations::kInt8 ? "int8" : "float32";
}

ActivationPlan::ActivationPlan() {
  choices_.fill(Activations::kFloat32);
}

Result<ActivationPlan> ActivationPlan::parse(const std::string& text) {
  ActivationPlan plan;
  size_t end = std::min(text.find(','), text.size());
  const std::string base = text.substr(0, end);
  if (const auto choice = parse_choice(base)) {
    plan.choices_.fill(*choice);
  } else if (base != "default") {
    return make_error(ErrorCode::kInvalidArgument,
                      "unknown activations '{}'; known are: int8, f32, default, and exceptions "
                      "behind them, such as int8,head=f32",
                      text);
  }
  while (end < text.size()) {
    const size_t begin = end + 1;
    end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t equals = std::min(part.find('='), part.size());
    SLUICE_TRY(const auto kind, parse_kind(std::string_view(part).substr(0, equals)));
    const auto choice =
        parse_choice(equals < part.size() ? std::string_view(part).substr(equals + 1) : "");
    if (!choice) {
      return make_error(ErrorCode::kInvalidArgument,
                        "activations '{}': '{}' must be {}=int8 or {}=f32",
                        text,
                        part,
                        module_kind_name(kind),
                        module_kind_name(kind));
    }
    plan.choices_[static_cast<int>(kind)] = *choice;
  }
  return plan;
}

Activations ActivationPlan::of(ModuleKind kind) const {
  return kind == ModuleKind::kOther ? Activations::kFloat32 : choices_[static_cast<int>(kind)];
}

std::string ActivationPlan::describe() const {
  const auto int8 = std::count(choices_.begin(), choices_.end(), Activations::kInt8);
  const auto base = 2 * int8 > kNumModuleKinds ? Activations::kInt8 : Activations::kFloat32;
  std::string text = choice_name(base);
  for (int i = 0; i < kNumModuleKinds; ++i) {
    if (choices_[i] == base) continue;
    text += std::string(",") + module_kind_name(static_cast<ModuleKind>(i)) + "=" +
            choice_name(choices_[i]);
  }
  return text;
}

}  // namespace sluice::kernels
