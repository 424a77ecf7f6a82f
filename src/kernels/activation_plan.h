// Which linear layers take int8 activations: a choice per module kind, made before a model is
// loaded, from the layer's place in the model alone (design rule 1: never from row counts).
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/linear/linear_kernels.h"

namespace sluice::kernels {

// What a linear layer is to its block. kOther (routers, decay gates, embeddings that are no head)
// always has float32 activations.
enum class ModuleKind { kQkv, kOut, kGateUp, kDown, kHead, kOther };
inline constexpr int kNumModuleKinds = 5;  // without kOther

const char* module_kind_name(ModuleKind kind);  // "qkv", "out", "gate_up", "down", "head", "other"

// The kind by the last part of a weight's path, as Hugging Face's checkpoints spell it:
// "model.layers.0.self_attn.q_proj" (with or without ".weight") -> kQkv. tied_head: the embedding
// is the head too.
ModuleKind module_kind(std::string_view path, bool tied_head);

const char* activations_name(Activations activations);  // "float32", "int8"

// Quantized weights only; dense weights have float32 activations whatever the plan says.
class ActivationPlan {
 public:
  // The default: docs/numerics.md has the measurement that it follows from.
  ActivationPlan();

  // "int8", "f32" or "default" for all kinds, then exceptions: "int8,head=f32,down=f32". An error
  // names the part it does not know and lists the known ones.
  static Result<ActivationPlan> parse(const std::string& text);

  Activations of(ModuleKind kind) const;
  // As parse reads it: "int8", "f32", "int8,head=f32".
  std::string describe() const;
  bool operator==(const ActivationPlan&) const = default;

 private:
  std::array<Activations, kNumModuleKinds> choices_;
};

}  // namespace sluice::kernels
