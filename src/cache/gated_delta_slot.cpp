#include "cache/gated_delta_slot.h"

#include <utility>

namespace sluice::cache {
namespace {

// A product with 1 and not a copy: the memory is new, and every bit is kept, signs of zeros too.
mx::array deep_copy(const mx::array& x) {
  auto copy = mx::multiply(x, mx::ones({1}, x.dtype()));
  copy.eval();
  return copy;
}

}  // namespace

size_t GatedDeltaLayout::nbytes(const kernels::Context& context) const {
  size_t values = size_t{1} * shape.value_heads * shape.key_dim;
  values *= context.reference() ? shape.value_dim : (shape.value_dim + 15) / 16 * 16;
  const size_t tail = size_t{1} * (conv_taps - 1) * conv_channels * mx::size_of(conv_dtype);
  return layers * (values * sizeof(float) + tail);
}

GatedDeltaSlot::GatedDeltaSlot(const kernels::Context& context, const GatedDeltaLayout& layout)
    : tail_(kernels::zero_conv_tail(layout.conv_taps, layout.conv_channels, layout.conv_dtype)),
      state_(kernels::zero_delta_state(context, layout.shape)) {}

void GatedDeltaSlot::record(DeltaRecord record) {
  SLUICE_CHECK(!record_.has_value(),
               "a tentative pass of {} tokens has not been committed yet",
               record_->tokens.size());
  record_ = std::move(record);
}

void GatedDeltaSlot::commit(const kernels::Context& context,
                            const GatedDeltaLayout& layout,
                            int keep) {
  SLUICE_CHECK(record_.has_value(), "commit of {} tokens without a tentative pass", keep);
  const int count = static_cast<int>(record_->tokens.size());
  SLUICE_CHECK(keep >= 0 && keep <= count, "commit of {} tokens; the pass had {}", keep, count);
  if (keep > 0) {
    auto& r = *record_;
    r.tokens.resize(keep);
    tail_ = kernels::advanced_conv_tail(tail_, r.conv_input, r.tokens);
    kernels::gated_delta_replay(
        context, r.k, r.v, r.g, r.beta, layout.shape, {{r.tokens, &state_, true}});
  }
  record_.reset();
}

GatedDeltaSlot::Snapshot GatedDeltaSlot::snapshot() const {
  SLUICE_CHECK(!record_.has_value(), "a snapshot while a tentative pass is open");
  return {deep_copy(tail_), deep_copy(state_)};
}

void GatedDeltaSlot::restore(const Snapshot& snapshot) {
  SLUICE_CHECK(!record_.has_value(), "a restore while a tentative pass is open");
  tail_ = deep_copy(snapshot.tail);
  state_ = deep_copy(snapshot.state);
}

}  // namespace sluice::cache
