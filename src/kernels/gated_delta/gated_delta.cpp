#include "kernels/gated_delta/gated_delta.h"

#include <numeric>

#include "tensor/checks.h"

namespace sluice::kernels {
namespace {

constexpr const char* kOp = "gated_delta";

void check_shape(const GatedDeltaShape& s) {
  if (s.key_dim < 32 || s.key_dim % 32 != 0) {
    throw_error(ErrorCode::kUnsupported,
                "[gated_delta] key_dim is {}; it must be a multiple of 32",
                s.key_dim);
  }
  if (s.key_heads < 1 || s.value_heads < 1 || s.value_heads % s.key_heads != 0 || s.value_dim < 1) {
    throw_error(ErrorCode::kInvalidArgument,
                "[gated_delta] {} key heads, {} value heads of {}; the value heads must be a "
                "multiple of the key heads",
                s.key_heads,
                s.value_heads,
                s.value_dim);
  }
}

void check_inputs(const mx::array& k,
                  const mx::array& v,
                  const mx::array& g,
                  const mx::array& beta,
                  const GatedDeltaShape& s) {
  tensor::require_dtype(kOp, "k", k, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_dtype(kOp, "v", v, {k.dtype()});
  tensor::require_dtype(kOp, "beta", beta, {k.dtype()});
  tensor::require_dtype(kOp, "g", g, {mx::float32});
  const int tokens = k.shape(0);
  tensor::require_shape(kOp, "k", k, {tokens, s.key_heads, s.key_dim});
  tensor::require_shape(kOp, "v", v, {tokens, s.value_heads, s.value_dim});
  tensor::require_shape(kOp, "beta", beta, {tokens, s.value_heads});
  if (g.ndim() == 3) {
    tensor::require_shape(kOp, "g", g, {tokens, s.value_heads, s.key_dim});
  } else {
    tensor::require_shape(kOp, "g", g, {tokens, s.value_heads});
  }
}

void check_rows(const std::vector<DeltaRow>& rows, int tokens, const mx::Shape& state_shape) {
  std::vector<bool> taken(tokens, false);
  for (size_t r = 0; r < rows.size(); ++r) {
    SLUICE_CHECK(rows[r].state != nullptr, "gated_delta: row {} has no state", r);
    tensor::require_shape(kOp, "state", *rows[r].state, state_shape);
    tensor::require_dtype(kOp, "state", *rows[r].state, {mx::float32});
    int last = -1;
    for (const int token : rows[r].tokens) {
      if (token <= last || token >= tokens || taken[token]) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[gated_delta] row {} lists token {} after {}; the call has {} tokens, a row "
                    "lists them in ascending order, and no two rows share one",
                    r,
                    token,
                    last,
                    tokens);
      }
      taken[token] = true;
      last = token;
    }
  }
}

mx::Shape state_shape(const Context& context, const GatedDeltaShape& s) {
  if (context.reference()) return {s.value_heads, s.value_dim, s.key_dim};
  return {s.value_heads, (s.value_dim + 15) / 16, s.key_dim, 16};
}

// What the reference makes of the same call, without touching a state of the own kernel's.
mx::array checked_reference(const Context& context,
                            const mx::array& q,
                            const mx::array& k,
                            const mx::array& v,
                            const mx::array& g,
                            const mx::array& beta,
                            const GatedDeltaShape& shape,
                            std::vector<DeltaRow> rows) {
  std::vector<mx::array> states;
  states.reserve(rows.size());
  for (auto& row : rows) {
    states.push_back(delta_state_values(context, shape, *row.state));
    row.state = &states.back();
  }
  auto y = gated_delta_reference(q, k, v, g, beta, shape, rows);
  mx::eval(y);
  return y;
}

}  // namespace

std::vector<int32_t> token_range(int first, int count) {
  std::vector<int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

mx::array zero_delta_state(const Context& context, const GatedDeltaShape& shape) {
  check_shape(shape);
  auto state = mx::zeros(state_shape(context, shape), mx::float32);
  mx::eval(state);
  return state;
}

mx::array delta_state_values(const Context& context,
                             const GatedDeltaShape& s,
                             const mx::array& state) {
  auto values = state;
  if (!context.reference()) {
    // [Hv, P, Dk, 16] -> [Hv, P, 16, Dk] -> [Hv, 16 P, Dk], without the padding.
    values = mx::reshape(mx::transpose(state, {0, 1, 3, 2}), {s.value_heads, -1, s.key_dim});
    values = mx::slice(values, {0, 0, 0}, {s.value_heads, s.value_dim, s.key_dim});
  }
  // A product and not a copy, which may share the memory that the own kernel writes to.
  values = mx::multiply(values, mx::ones({1}, mx::float32));
  mx::eval(values);
  return values;
}

mx::array delta_state_of(const Context& context,
                         const GatedDeltaShape& s,
                         const mx::array& values) {
  tensor::require_shape(kOp, "values", values, {s.value_heads, s.value_dim, s.key_dim});
  auto state = mx::multiply(values, mx::ones({1}, mx::float32));
  if (!context.reference()) {
    const int panels = (s.value_dim + 15) / 16;
    state = mx::pad(state, {{0, 0}, {0, 16 * panels - s.value_dim}, {0, 0}});
    state = mx::reshape(state, {s.value_heads, panels, 16, s.key_dim});
    state = mx::contiguous(mx::transpose(state, {0, 1, 3, 2}));
  }
  mx::eval(state);
  return state;
}

mx::array gated_delta(const Context& context,
                      const mx::array& q,
                      const mx::array& k,
                      const mx::array& v,
                      const mx::array& g,
                      const mx::array& beta,
                      const GatedDeltaShape& shape,
                      const std::vector<DeltaRow>& rows) {
  check_shape(shape);
  check_inputs(k, v, g, beta, shape);
  tensor::require_dtype(kOp, "q", q, {k.dtype()});
  tensor::require_shape(kOp, "q", q, k.shape());
  check_rows(rows, k.shape(0), state_shape(context, shape));
  if (context.reference()) return gated_delta_reference(q, k, v, g, beta, shape, rows);
  if (!context.check()) return gated_delta_cpu(context, q, k, v, g, beta, shape, rows);
  auto reference = checked_reference(context, q, k, v, g, beta, shape, rows);
  return context.compare(
      Op::kGatedDelta, gated_delta_cpu(context, q, k, v, g, beta, shape, rows), reference);
}

void gated_delta_replay(const Context& context,
                        const mx::array& k,
                        const mx::array& v,
                        const mx::array& g,
                        const mx::array& beta,
                        const GatedDeltaShape& shape,
                        const std::vector<DeltaRow>& rows) {
  check_shape(shape);
  check_inputs(k, v, g, beta, shape);
  check_rows(rows, k.shape(0), state_shape(context, shape));
  if (!context.reference()) {
    gated_delta_replay_cpu(context, k, v, g, beta, shape, rows);
    return;
  }
  // The reference's output is not evaluated, so the query costs nothing.
  auto settled = rows;
  for (auto& row : settled) row.settled = true;
  gated_delta_reference(k, k, v, g, beta, shape, settled);
  std::vector<mx::array> states;
  for (const auto& row : rows) states.push_back(*row.state);
  mx::eval(states);
}

}  // namespace sluice::kernels
