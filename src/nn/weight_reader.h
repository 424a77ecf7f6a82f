// Takes a family's weights out of a checkpoint and prepares them for the context's backend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/linear/linear.h"
#include "loader/weight_map.h"

namespace sluice::nn {

// Reads with the first error kept: after an error every call throws nothing and returns a harmless
// value, so that a family reads all its weights in a row and asks status() once. Borrows its
// arguments.
class WeightReader {
 public:
  // dtype: cast all float weights, scales and biases to it; none: keep the checkpoint's.
  WeightReader(const kernels::Context& context,
               loader::WeightMap& weights,
               std::optional<mx::Dtype> dtype)
      : context_(context), weights_(weights), dtype_(dtype) {}

  // <path>.weight [out, in] with its scales and biases if quantized, and <path>.bias [out] if bias.
  std::optional<kernels::LinearWeight> linear(const std::string& path, int out, int in, bool bias);
  // The same matrix cut into parts by output row: part i has the rows parts[i], in that order (with
  // their biases). For projections that a checkpoint stores interleaved.
  std::vector<kernels::LinearWeight> linear_parts(const std::string& path,
                                                  int out,
                                                  int in,
                                                  bool bias,
                                                  const std::vector<std::vector<int32_t>>& parts);
  // <path>.weight [size] + offset, evaluated. The sum is made in the dtype asked for: a checkpoint
  // that stores a norm's weight less 1 keeps float32's precision where float32 is asked for.
  std::optional<mx::array> vector(const std::string& path, int size, float offset = 0.0f);
  // The tensor `name` of this shape, evaluated; in float32 whatever the reader's dtype if
  // keep_float32 (for what a model computes in float32 from the stored values).
  std::optional<mx::array> tensor(const std::string& name,
                                  const mx::Shape& shape,
                                  bool keep_float32 = false);

  bool contains(const std::string& name) const { return weights_.contains(name); }
  const Status& status() const { return status_; }
  // Resident bytes of everything read so far.
  size_t bytes() const { return bytes_; }
  // The dtype that the first linear's activations have (its scales' or its own).
  mx::Dtype activation_dtype() const { return activation_dtype_.value_or(mx::float32); }

 private:
  mx::array cast(const mx::array& x) const;
  Result<std::vector<kernels::LinearWeight>> read_linear(
      const std::string& path,
      int out,
      int in,
      bool bias,
      const std::vector<std::vector<int32_t>>& parts);
  // The first error is kept.
  template <class T>
  std::optional<T> keep(Result<T> result);

  const kernels::Context& context_;
  loader::WeightMap& weights_;
  std::optional<mx::Dtype> dtype_;
  std::optional<mx::Dtype> activation_dtype_;
  Status status_;
  size_t bytes_ = 0;
};

}  // namespace sluice::nn
