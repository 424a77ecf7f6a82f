#include "kernels/causal_conv/causal_conv.h"

#include "tensor/checks.h"

namespace sluice::kernels {
namespace {

constexpr const char* kOp = "causal_conv";

void check_rows(const std::vector<ConvRow>& rows, const mx::array& x, const ConvWeight& weight) {
  const int tokens = x.shape(0);
  std::vector<bool> taken(tokens, false);
  for (size_t r = 0; r < rows.size(); ++r) {
    SLUICE_CHECK(rows[r].tail != nullptr, "causal_conv: row {} has no tail", r);
    tensor::require_shape(kOp, "tail", *rows[r].tail, {weight.taps() - 1, weight.channels()});
    tensor::require_dtype(kOp, "tail", *rows[r].tail, {x.dtype()});
    int last = -1;
    for (const int token : rows[r].tokens) {
      if (token <= last || token >= tokens || taken[token]) {
        throw_error(ErrorCode::kInvalidArgument,
                    "[causal_conv] row {} lists token {} after {}; the call has {} tokens, a row "
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

}  // namespace

ConvWeight::ConvWeight(const Context& context, const mx::array& weight) {
  tensor::require_dtype(kOp, "weight", weight, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_shape(kOp, "weight", weight, {tensor::kAnyDim, tensor::kAnyDim});
  channels_ = weight.shape(0);
  taps_ = weight.shape(1);
  if (taps_ < 2) {
    throw_error(ErrorCode::kInvalidArgument, "[causal_conv] {} taps; at least 2 are needed", taps_);
  }
  if (context.reference() || context.check()) {
    by_channel_ = mx::reshape(weight, {channels_, taps_, 1});
    by_channel_->eval();
  }
  if (!context.reference()) {
    by_tap_ = mx::contiguous(mx::transpose(mx::astype(weight, mx::float32)));
    by_tap_->eval();
  }
}

size_t ConvWeight::nbytes() const {
  return (by_channel_ ? by_channel_->nbytes() : 0) + (by_tap_ ? by_tap_->nbytes() : 0);
}

mx::array zero_conv_tail(int taps, int channels, mx::Dtype dtype) {
  auto tail = mx::zeros({taps - 1, channels}, dtype);
  mx::eval(tail);
  return tail;
}

mx::array causal_conv(const Context& context,
                      const mx::array& x,
                      const ConvWeight& weight,
                      const std::vector<ConvRow>& rows) {
  tensor::require_dtype(kOp, "x", x, {mx::float32, mx::float16, mx::bfloat16});
  tensor::require_shape(kOp, "x", x, {tensor::kAnyDim, weight.channels()});
  check_rows(rows, x, weight);
  if (context.reference()) return causal_conv_reference(x, weight, rows);
  if (!context.check()) return causal_conv_cpu(context, x, weight, rows);
  // The reference must not touch the tails, nor read what the own kernel wrote.
  auto copies = rows;
  std::vector<mx::array> tails;
  tails.reserve(rows.size());
  for (auto& row : copies) {
    tails.push_back(mx::multiply(*row.tail, mx::ones({1}, x.dtype())));
    tails.back().eval();
    row.tail = &tails.back();
  }
  auto reference = causal_conv_reference(x, weight, copies);
  reference.eval();
  return context.compare(Op::kCausalConv, causal_conv_cpu(context, x, weight, rows), reference);
}

mx::array advanced_conv_tail(const mx::array& tail,
                             const mx::array& x,
                             const std::vector<int32_t>& tokens) {
  const int keep = tail.shape(0), count = static_cast<int>(tokens.size());
  std::vector<mx::array> parts;
  if (count < keep) parts.push_back(mx::slice(tail, {count, 0}, tail.shape()));
  const int from = std::max(0, count - keep);
  if (count > 0) {
    parts.push_back(mx::take(x, mx::array(tokens.data() + from, {count - from}, mx::int32), 0));
  }
  // Concatenation and gathering make new memory; a lone slice of the tail would share the old.
  auto advanced = parts.size() == 1 ? mx::multiply(parts[0], mx::ones({1}, tail.dtype()))
                                    : mx::concatenate(parts, 0);
  advanced.eval();
  return advanced;
}

}  // namespace sluice::kernels
