#include "nn/rope_config.h"

#include <algorithm>
#include <cmath>

#include "base/config_reader.h"

namespace sluice::nn {
namespace {

using nlohmann::json;

constexpr int kMaxPositions = 1 << 30;
constexpr double kPi = 3.14159265358979323846;

mx::array scalar(double value) {
  return mx::array(static_cast<float>(value), mx::float32);
}

// base^(2i / dims), i = 0 .. dims/2 - 1, float32, by MLX's own ops: the oracle's bits.
mx::array frequencies(double base, int dims) {
  auto exponents =
      mx::divide(mx::arange(0, dims, 2, mx::float32), mx::array(static_cast<float>(dims)));
  return mx::power(scalar(base), exponents);
}

// rope_utils.Llama3RoPE.
mx::array llama3_frequencies(ConfigReader& reader, double base, int dims) {
  const double factor = reader.number("factor");
  const double low_factor = reader.number("low_freq_factor", 1.0);
  const double high_factor = reader.number("high_freq_factor", 4.0);
  const int old_context =
      reader.integer("original_max_position_embeddings", 1, kMaxPositions, 8192);
  if (reader.status().ok() && (factor <= 0 || low_factor <= 0 || high_factor <= low_factor)) {
    reader.fail(ErrorCode::kCorruptFile,
                fmt::format("rope_scaling: llama3 needs factor > 0 and 0 < low_freq_factor < "
                            "high_freq_factor, but has {}, {}, {}",
                            factor,
                            low_factor,
                            high_factor));
  }
  const double low_wavelength = old_context / low_factor;
  const double high_wavelength = old_context / high_factor;

  auto freqs = frequencies(base, dims);
  auto wavelengths = mx::multiply(scalar(2 * kPi), freqs);
  freqs = mx::where(
      mx::greater(wavelengths, scalar(low_wavelength)), mx::multiply(freqs, scalar(factor)), freqs);
  auto medium = mx::logical_and(mx::greater(wavelengths, scalar(high_wavelength)),
                                mx::less(wavelengths, scalar(low_wavelength)));
  auto smooth =
      mx::divide(mx::subtract(mx::divide(scalar(old_context), wavelengths), scalar(low_factor)),
                 scalar(high_factor - low_factor));
  auto blended = mx::divide(
      freqs, mx::add(mx::divide(mx::subtract(scalar(1), smooth), scalar(factor)), smooth));
  return mx::where(medium, blended, freqs);
}

double yarn_mscale(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

// rope_utils.YarnRoPE. Also sets spec's input scale.
mx::array yarn_frequencies(ConfigReader& reader, double base, int dims, kernels::RopeSpec& spec) {
  const double factor = reader.number("factor");
  const int original = reader.integer("original_max_position_embeddings", 1, kMaxPositions, 4096);
  const double beta_fast = reader.number("beta_fast", 32);
  const double beta_slow = reader.number("beta_slow", 1);
  spec.input_scale = static_cast<float>(yarn_mscale(factor, reader.number("mscale", 1)) /
                                        yarn_mscale(factor, reader.number("mscale_all_dim", 0)));
  if (reader.status().ok() && (factor <= 0 || beta_fast <= 0 || beta_slow <= 0)) {
    reader.fail(ErrorCode::kCorruptFile,
                "rope_scaling: yarn needs factor, beta_fast and beta_slow above 0");
  }
  auto correction_dim = [&](double rotations) {
    return dims * std::log(original / (rotations * 2 * kPi)) / (2 * std::log(base));
  };
  const double low = std::max(std::floor(correction_dim(beta_fast)), 0.0);
  double high = std::min(std::ceil(correction_dim(beta_slow)), dims - 1.0);
  if (low == high) high += 0.001;  // else the ramp divides by zero

  auto ramp = mx::divide(mx::subtract(mx::arange(0, dims / 2, 1, mx::float32), scalar(low)),
                         scalar(high - low));
  auto mask = mx::subtract(scalar(1), mx::clip(ramp, scalar(0), scalar(1)));
  auto extra = frequencies(base, dims);
  auto inter = mx::multiply(scalar(factor), extra);
  return mx::divide(
      mx::multiply(inter, extra),
      mx::add(mx::multiply(inter, mask), mx::multiply(extra, mx::subtract(scalar(1), mask))));
}

}  // namespace

Result<kernels::RopeSpec> rope_from_config(const json& config, int head_dim, double default_theta) {
  static const json kNone = json::object();
  ConfigReader top(config, "config.json");
  const json& nested = top.has("rope_parameters") ? config.at("rope_parameters") : kNone;
  const json& scaling = top.has("rope_scaling") ? config.at("rope_scaling") : nested;
  ConfigReader parameters(nested, "config.json: rope_parameters");
  ConfigReader reader(scaling, "config.json: rope_scaling");

  kernels::RopeSpec spec;
  spec.dims = head_dim;
  spec.traditional = top.boolean("rope_traditional", false);
  const double theta = top.number("rope_theta", parameters.number("rope_theta", default_theta));
  SLUICE_TRY_STATUS(top.status());
  SLUICE_TRY_STATUS(parameters.status());
  if (theta <= 1) {
    return make_error(
        ErrorCode::kCorruptFile, "config.json: rope_theta is {}; it must be above 1", theta);
  }
  spec.base = static_cast<float>(theta);

  const std::string type = reader.text("type", reader.text("rope_type", "default"));
  if (type == "linear") {
    const double factor = reader.number("factor");
    if (reader.status().ok() && factor <= 0) {
      reader.fail(ErrorCode::kCorruptFile, "config.json: rope_scaling: factor must be above 0");
    }
    spec.scale = static_cast<float>(1 / factor);
  } else if (type == "llama3") {
    spec.freqs = llama3_frequencies(reader, theta, head_dim);
  } else if (type == "yarn") {
    spec.freqs = yarn_frequencies(reader, theta, head_dim, spec);
  } else if (type != "default" && type != "mrope") {
    // mrope turns text, whose three axes have one position, as the default does.
    reader.fail(ErrorCode::kUnsupported,
                fmt::format("config.json: rope type \"{}\" is not supported; supported are "
                            "default, mrope, linear, llama3, yarn",
                            type));
  }
  SLUICE_TRY_STATUS(reader.status());
  if (spec.freqs) mx::eval(*spec.freqs);
  return spec;
}

}  // namespace sluice::nn
