#include "loader/quantization_config.h"

#include <utility>

namespace sluice::loader {

namespace {

// mlx.nn.quantize's defaults for the affine mode.
constexpr int kDefaultBits = 4;
constexpr int kDefaultGroupSize = 64;

// Keys of the global dict that are settings, not module paths.
bool is_setting(const std::string& key) {
  return key == "bits" || key == "group_size" || key == "mode" || key == "quantize_activations";
}

Result<int> integer_or(const nlohmann::json& dict,
                       const char* key,
                       int fallback,
                       const std::string& where) {
  const auto found = dict.find(key);
  if (found == dict.end() || found->is_null()) return fallback;
  if (!found->is_number_integer()) {
    return make_error(ErrorCode::kCorruptFile,
                      "config.json: {} of {} is {}; it must be an integer",
                      key,
                      where,
                      found->dump());
  }
  const auto value = found->get<int64_t>();
  return value < 0 || value > 1024 ? -1 : static_cast<int>(value);
}

Result<AffineFormat> read_format(const nlohmann::json& dict, const std::string& where) {
  const auto mode = dict.find("mode");
  if (mode != dict.end() && *mode != "affine") {
    return make_error(ErrorCode::kUnsupported,
                      "config.json: {} has quantization mode {}; sluice reads affine. Take an "
                      "affine conversion of the model (mlx_lm.convert -q --q-mode affine)",
                      where,
                      mode->dump());
  }
  const auto activations = dict.find("quantize_activations");
  if (activations != dict.end() && *activations != false) {
    return make_error(ErrorCode::kUnsupported,
                      "config.json: {} asks for quantized activations, which sluice cannot do",
                      where);
  }
  AffineFormat format;
  SLUICE_TRY(format.bits, integer_or(dict, "bits", kDefaultBits, where));
  SLUICE_TRY(format.group_size, integer_or(dict, "group_size", kDefaultGroupSize, where));
  const bool bits_known = (format.bits >= 2 && format.bits <= 6) || format.bits == 8;
  const bool group_known =
      format.group_size == 32 || format.group_size == 64 || format.group_size == 128;
  if (!bits_known || !group_known) {
    return make_error(ErrorCode::kUnsupported,
                      "config.json: {} has {} bits in groups of {}; sluice reads 2, 3, 4, 5, 6 and "
                      "8 bits in groups of 32, 64 and 128",
                      where,
                      dict.value("bits", nlohmann::json(kDefaultBits)).dump(),
                      dict.value("group_size", nlohmann::json(kDefaultGroupSize)).dump());
  }
  return format;
}

// The dict that holds MLX's settings, or null if the model is not quantized.
Result<const nlohmann::json*> find_settings(const nlohmann::json& config) {
  for (const char* key : {"quantization", "quantization_config"}) {
    const auto found = config.find(key);
    if (found == config.end() || found->is_null()) continue;
    if (!found->is_object()) {
      return make_error(ErrorCode::kCorruptFile,
                        "config.json: {} is {}; it must be an object",
                        key,
                        found->dump());
    }
    // MLX writes no method; the others (awq, gptq, fp8, bitsandbytes, ...) pack their own way.
    const auto method = found->find("quant_method");
    if (method != found->end()) {
      return make_error(ErrorCode::kUnsupported,
                        "config.json: the weights are quantized by {}; sluice reads MLX's affine "
                        "form. Convert the model with mlx_lm.convert -q",
                        method->dump());
    }
    return &*found;
  }
  return static_cast<const nlohmann::json*>(nullptr);
}

}  // namespace

Result<QuantizationConfig> QuantizationConfig::parse(const nlohmann::json& config) {
  QuantizationConfig result;
  SLUICE_TRY(const nlohmann::json* settings, find_settings(config));
  if (!settings) return result;
  SLUICE_TRY(result.default_format_, read_format(*settings, "quantization"));
  for (const auto& [key, value] : settings->items()) {
    if (is_setting(key)) continue;
    if (value.is_boolean()) {
      result.modules_[key] =
          value.get<bool>() ? result.default_format_ : std::optional<AffineFormat>();
    } else if (value.is_object()) {
      SLUICE_TRY(const AffineFormat format, read_format(value, "quantization of " + key));
      result.modules_[key] = format;
    } else {
      return make_error(
          ErrorCode::kCorruptFile,
          "config.json: quantization of {} is {}; it must be an object, true or false",
          key,
          value.dump());
    }
  }
  return result;
}

std::optional<AffineFormat> QuantizationConfig::format_of(const std::string& module_path) const {
  const auto found = modules_.find(module_path);
  return found == modules_.end() ? default_format_ : found->second;
}

bool QuantizationConfig::demands(const std::string& module_path) const {
  const auto found = modules_.find(module_path);
  return found != modules_.end() && found->second.has_value();
}

}  // namespace sluice::loader
