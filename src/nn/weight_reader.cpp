#include "nn/weight_reader.h"

namespace sluice::nn {

mx::array WeightReader::cast(const mx::array& x) const {
  return dtype_ ? mx::astype(x, *dtype_) : x;
}

template <class T>
std::optional<T> WeightReader::keep(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  if (status_.ok()) status_ = result.error();
  return std::nullopt;
}

Result<std::vector<kernels::LinearWeight>> WeightReader::read_linear(
    const std::string& path,
    int out,
    int in,
    bool bias,
    const std::vector<std::vector<int32_t>>& parts) {
  SLUICE_TRY(auto matrix, weights_.take_matrix(path, out, in));
  // An embedding may be the head too; where it is not, no activations meet it.
  const auto activations = context_.activations().of(kernels::module_kind(path, true));
  std::optional<mx::array> bias_vector;
  if (bias) {
    SLUICE_TRY(bias_vector, weights_.take(path + ".bias", {out}));
    bias_vector = cast(*bias_vector);
  }
  // The own kernel reads 16-bit weights and scales as they are; a cast would only cost time and
  // memory.
  const bool as_stored = !context_.reference() && !context_.check();
  auto prepared = [&](const mx::array& x) { return as_stored ? x : cast(x); };
  // rows: indices of output rows, none for all of them.
  auto part = [&](const std::optional<mx::array>& rows) {
    auto pick = [&](const mx::array& x) { return rows ? mx::take(x, *rows, 0) : x; };
    std::optional<mx::array> bias_part;
    if (bias_vector) bias_part = pick(*bias_vector);
    if (const auto* affine = std::get_if<loader::AffineMatrix>(&matrix)) {
      return kernels::LinearWeight::affine(context_,
                                           pick(affine->weight),
                                           prepared(pick(affine->scales)),
                                           prepared(pick(affine->biases)),
                                           affine->bits,
                                           affine->group_size,
                                           bias_part,
                                           activations);
    }
    return kernels::LinearWeight::dense(
        context_, prepared(pick(std::get<mx::array>(matrix))), bias_part);
  };

  if (!activation_dtype_) {
    const auto* affine = std::get_if<loader::AffineMatrix>(&matrix);
    activation_dtype_ =
        dtype_.value_or(affine ? affine->scales.dtype() : std::get<mx::array>(matrix).dtype());
  }
  std::vector<kernels::LinearWeight> weights;
  for (const auto& rows : parts) {
    weights.push_back(part(mx::array(rows.data(), {static_cast<int>(rows.size())}, mx::int32)));
  }
  if (parts.empty()) weights.push_back(part(std::nullopt));
  for (const auto& weight : weights) bytes_ += weight.nbytes();
  return weights;
}

std::optional<kernels::LinearWeight> WeightReader::linear(const std::string& path,
                                                          int out,
                                                          int in,
                                                          bool bias) {
  auto weights = linear_parts(path, out, in, bias, {});
  if (weights.empty()) return std::nullopt;
  return std::move(weights[0]);
}

std::vector<kernels::LinearWeight> WeightReader::linear_parts(
    const std::string& path,
    int out,
    int in,
    bool bias,
    const std::vector<std::vector<int32_t>>& parts) {
  if (!status_.ok()) return {};
  auto weights = keep(read_linear(path, out, in, bias, parts));
  if (!weights) return {};
  return std::move(*weights);
}

std::optional<mx::array> WeightReader::vector(const std::string& path, int size, float offset) {
  auto x = tensor(path + ".weight", {size});
  if (!x || offset == 0.0f) return x;
  x = mx::add(*x, mx::array(offset, x->dtype()));
  mx::eval(*x);
  return x;
}

std::optional<mx::array> WeightReader::tensor(const std::string& name,
                                              const mx::Shape& shape,
                                              bool keep_float32) {
  if (!status_.ok()) return std::nullopt;
  auto stored = keep(weights_.take(name, shape));
  if (!stored) return std::nullopt;
  auto x = keep_float32 ? mx::astype(*stored, mx::float32) : cast(*stored);
  mx::eval(x);
  bytes_ += x.nbytes();
  return x;
}

}  // namespace sluice::nn
