#include "kernels/rope/rope.h"

#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

void require_spec(const RopeSpec& spec, int head_dim) {
  if (spec.dims <= 0 || spec.dims % 2 != 0 || spec.dims > head_dim) {
    throw_error(ErrorCode::kInvalidArgument,
                "[rope] dims is {}; it must be even, positive and at most the head size, {}",
                spec.dims,
                head_dim);
  }
  if (spec.freqs) {
    tensor::require_shape("rope", "freqs", *spec.freqs, {spec.dims / 2});
    tensor::require_dtype("rope", "freqs", *spec.freqs, {mx::float32});
  } else if (!(spec.base > 0)) {
    throw_error(ErrorCode::kInvalidArgument, "[rope] base is {}; it must be positive", spec.base);
  }
}

void require_rows(const std::vector<RowSpan>& rows, int tokens) {
  int next = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const RowSpan& row = rows[i];
    if (row.first_token != next || row.count < 1 || row.first_position < 0) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[rope] row {} is {} tokens from token {} at position {}; it must start at token "
                  "{} and have at least one token and no negative position",
                  i,
                  row.count,
                  row.first_token,
                  row.first_position,
                  next);
    }
    next += row.count;
  }
  if (next != tokens) {
    throw_error(
        ErrorCode::kInvalidArgument, "[rope] the rows cover {} tokens, but x has {}", next, tokens);
  }
}

}  // namespace

mx::array rope(const Context& context,
               const mx::array& x,
               const std::vector<RowSpan>& rows,
               const RopeSpec& spec) {
  tensor::require_shape("rope", "x", x, {tensor::kAnyDim, tensor::kAnyDim, tensor::kAnyDim});
  tensor::require_dtype("rope", "x", x, {mx::float32, mx::float16, mx::bfloat16});
  require_spec(spec, x.shape(2));
  require_rows(rows, x.shape(0));
  if (x.size() == 0) return x;
  return dispatch(
      context,
      Op::kRope,
      [&] { return rope_cpu(context, x, rows, spec); },
      [&] { return rope_reference(x, rows, spec); });
}

}  // namespace sluice::kernels
