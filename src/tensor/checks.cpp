#include "tensor/checks.h"

#include <algorithm>

#include "base/result.h"

namespace sluice::tensor {

std::string shape_string(const mx::Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

std::string dtype_name(mx::Dtype dtype) {
  switch (dtype.val()) {
    case mx::Dtype::Val::bool_:
      return "bool";
    case mx::Dtype::Val::uint8:
      return "uint8";
    case mx::Dtype::Val::uint16:
      return "uint16";
    case mx::Dtype::Val::uint32:
      return "uint32";
    case mx::Dtype::Val::uint64:
      return "uint64";
    case mx::Dtype::Val::int8:
      return "int8";
    case mx::Dtype::Val::int16:
      return "int16";
    case mx::Dtype::Val::int32:
      return "int32";
    case mx::Dtype::Val::int64:
      return "int64";
    case mx::Dtype::Val::float16:
      return "float16";
    case mx::Dtype::Val::float32:
      return "float32";
    case mx::Dtype::Val::float64:
      return "float64";
    case mx::Dtype::Val::bfloat16:
      return "bfloat16";
    case mx::Dtype::Val::complex64:
      return "complex64";
  }
  return "unknown";
}

namespace {

std::string expected_string(const mx::Shape& expected) {
  std::string text = "[";
  for (int dim : expected) {
    if (text.size() > 1) text += ", ";
    text += dim == kAnyDim ? std::string("any") : std::to_string(dim);
  }
  return text + "]";
}

}  // namespace

void require_shape(std::string_view op,
                   std::string_view argument,
                   const mx::array& x,
                   const mx::Shape& expected) {
  const auto& shape = x.shape();
  const bool matches =
      shape.size() == expected.size() &&
      std::equal(expected.begin(), expected.end(), shape.begin(), [](int want, int have) {
        return want == kAnyDim || want == have;
      });
  if (!matches) {
    throw_error(ErrorCode::kInvalidArgument,
                "[{}] {} has shape {}; it must have shape {}",
                op,
                argument,
                shape_string(shape),
                expected_string(expected));
  }
}

void require_dtype(std::string_view op,
                   std::string_view argument,
                   const mx::array& x,
                   std::initializer_list<mx::Dtype> allowed) {
  std::string names;
  for (auto dtype : allowed) {
    if (x.dtype() == dtype) return;
    names += (names.empty() ? "" : " or ") + dtype_name(dtype);
  }
  throw_error(ErrorCode::kInvalidArgument,
              "[{}] {} has dtype {}; it must be {}",
              op,
              argument,
              dtype_name(x.dtype()),
              names);
}

}  // namespace sluice::tensor
