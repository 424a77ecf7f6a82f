// config.json's `quantization`: which affine form each module's weight has. Source of the format:
// mlx-lm's utils.py (load_model's class predicate) and mlx.nn.quantize.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace sluice::loader {

struct AffineFormat {
  int bits = 0;        // 2, 3, 4, 5, 6 or 8
  int group_size = 0;  // 32, 64 or 128
  bool operator==(const AffineFormat&) const = default;
};

class QuantizationConfig {
 public:
  QuantizationConfig() = default;

  // Reads `quantization` (or `quantization_config` in the same form). No such key: no module is
  // quantized. Errors: kUnsupported names a mode (mxfp4, nvfp4, ...), a foreign method (awq, gptq,
  // fp8, ...) or a bits/group pair that is not affine 2,3,4,5,6,8 x 32,64,128; kCorruptFile for
  // values of the wrong type.
  static Result<QuantizationConfig> parse(const nlohmann::json& config);

  // The form of a module that has scales: its own entry verbatim (a dict; true means the default),
  // else the default. nullopt: the config says that it is not quantized, or says nothing at all.
  std::optional<AffineFormat> format_of(const std::string& module_path) const;
  // Whether the config demands scales for this module (an entry that is a dict or true).
  bool demands(const std::string& module_path) const;

  const std::optional<AffineFormat>& default_format() const { return default_format_; }

 private:
  std::optional<AffineFormat> default_format_;
  std::map<std::string, std::optional<AffineFormat>> modules_;  // nullopt: false
};

}  // namespace sluice::loader
