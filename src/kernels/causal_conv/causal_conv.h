// Depthwise causal convolution over time, then SiLU: y[t, c] = silu(sum_j w[c, j] x[t - K + 1 + j,
// c]), where what lies before a row's first token of a pass comes from the row's tail: its last
// K - 1 inputs. Reference: mlx-lm's qwen3_5.GatedDeltaNet (concatenate, conv1d, silu).
//
// Rows list their tokens as those of gated_delta do: a token that no row lists is a pad, whose
// output is exactly 0 and whose input, NaN or not, reaches nothing. The own kernel writes settled
// rows' tails in place when its result is evaluated.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/context.h"

namespace sluice::kernels {

// One immutable weight, prepared for the context's backend.
class ConvWeight {
 public:
  // weight [C, K] of any float type, K >= 2; evaluated at once.
  ConvWeight(const Context& context, const mx::array& weight);

  int channels() const { return channels_; }
  int taps() const { return taps_; }
  size_t nbytes() const;

  // For the implementations; hold a value iff that form is kept.
  const std::optional<mx::array>& by_channel() const {
    return by_channel_;
  }                                                                   // [C, K, 1], reference
  const std::optional<mx::array>& by_tap() const { return by_tap_; }  // float32 [K, C], own

 private:
  int channels_ = 0;
  int taps_ = 0;
  std::optional<mx::array> by_channel_, by_tap_;
};

struct ConvRow {
  std::vector<int32_t>
      tokens;                 // indices into the call's N tokens, ascending; no two rows share one
  mx::array* tail = nullptr;  // [K - 1, C] of x's dtype, oldest first; replaced if settled
  bool settled = true;
};

// A zero tail. Evaluated.
mx::array zero_conv_tail(int taps, int channels, mx::Dtype dtype);

// x [N, C] -> [N, C]. Own kernel: float32. N may be 0.
mx::array causal_conv(const Context& context,
                      const mx::array& x,
                      const ConvWeight& weight,
                      const std::vector<ConvRow>& rows);
mx::array causal_conv_reference(const mx::array& x,
                                const ConvWeight& weight,
                                const std::vector<ConvRow>& rows);
mx::array causal_conv_cpu(const Context& context,
                          const mx::array& x,
                          const ConvWeight& weight,
                          const std::vector<ConvRow>& rows);

// The tail after the row's tokens of x [N, C], evaluated, as a settled causal_conv leaves it, in
// memory of its own.
mx::array advanced_conv_tail(const mx::array& tail,
                             const mx::array& x,
                             const std::vector<int32_t>& tokens);

}  // namespace sluice::kernels
