// Shape and dtype checks at the edge of every op. They throw Exception(kInvalidArgument) with the
// op in brackets, the argument's name, what it is and what it must be.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "tensor/mx.h"

namespace sluice::tensor {

inline constexpr int kAnyDim = -1;

// "[2, 3, 4]".
std::string shape_string(const mx::Shape& shape);
// "float32", "bfloat16", "uint32", ...
std::string dtype_name(mx::Dtype dtype);

// Requires shape(x) == expected, where kAnyDim matches every size.
void require_shape(std::string_view op,
                   std::string_view argument,
                   const mx::array& x,
                   const mx::Shape& expected);

// Requires x's dtype to be one of allowed.
void require_dtype(std::string_view op,
                   std::string_view argument,
                   const mx::array& x,
                   std::initializer_list<mx::Dtype> allowed);

}  // namespace sluice::tensor
