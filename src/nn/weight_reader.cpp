#include "nn/weight_reader.h"

namespace sluice::nn {

mx::array WeightReader::cast(const mx::array& x) const {
  return dtype_ ? mx::astype(x, *dtype_) : x;
}

Result<kernels::LinearWeight> WeightReader::read_linear(const std::string& path,
                                                        int out,
                                                        int in,
                                                        bool bias) {
  SLUICE_TRY(auto matrix, weights_.take_matrix(path, out, in));
  std::optional<mx::array> bias_vector;
  if (bias) {
    SLUICE_TRY(bias_vector, weights_.take(path + ".bias", {out}));
    bias_vector = cast(*bias_vector);
  }
  // The own kernel reads 16-bit weights and scales as they are; a cast would only cost time and
  // memory.
  const bool keep = !context_.reference() && !context_.check();
  auto prepared = [&](const mx::array& x) { return keep ? x : cast(x); };
  if (auto* affine = std::get_if<loader::AffineMatrix>(&matrix)) {
    if (!activation_dtype_) activation_dtype_ = dtype_.value_or(affine->scales.dtype());
    return kernels::LinearWeight::affine(context_,
                                         affine->weight,
                                         prepared(affine->scales),
                                         prepared(affine->biases),
                                         affine->bits,
                                         affine->group_size,
                                         bias_vector);
  }
  auto& dense = std::get<mx::array>(matrix);
  if (!activation_dtype_) activation_dtype_ = dtype_.value_or(dense.dtype());
  return kernels::LinearWeight::dense(context_, prepared(dense), bias_vector);
}

std::optional<kernels::LinearWeight> WeightReader::linear(const std::string& path,
                                                          int out,
                                                          int in,
                                                          bool bias) {
  if (!status_.ok()) return std::nullopt;
  auto result = read_linear(path, out, in, bias);
  if (!result.ok()) {
    status_ = result.error();
    return std::nullopt;
  }
  bytes_ += result->nbytes();
  return std::move(result).value();
}

std::optional<mx::array> WeightReader::vector(const std::string& path, int size) {
  if (!status_.ok()) return std::nullopt;
  auto result = weights_.take(path + ".weight", {size});
  if (!result.ok()) {
    status_ = result.error();
    return std::nullopt;
  }
  auto x = cast(*result);
  mx::eval(x);
  bytes_ += x.nbytes();
  return x;
}

}  // namespace sluice::nn
