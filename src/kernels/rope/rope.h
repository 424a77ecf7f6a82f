// Rotary position embedding (Su et al., 2021) over packed rows. Reference: mx::fast::rope, called
// as mlx-lm's rope_utils.py does.
#pragma once

#include <optional>
#include <vector>

#include "kernels/context.h"
#include "kernels/row_span.h"

namespace sluice::kernels {

// dims of the head's D values are rotated, the rest pass through. Angle of pair i at position p:
// p * scale / base^(2i / dims), or p * scale / freqs[i] where freqs is given (llama3, yarn, ...).
struct RopeSpec {
  int dims = 0;
  bool traditional = false;  // pairs (2i, 2i + 1) instead of (i, i + dims / 2)
  float base = 10000.0f;
  float scale = 1.0f;              // position scale: 1 / factor for linear scaling
  std::optional<mx::array> freqs;  // float32 [dims / 2], evaluated
  float input_scale = 1.0f;        // yarn's mscale, multiplied into the rotated dims first
};

// x [N, H, D] -> [N, H, D]; rows cover the N tokens. Own kernel: float32 only.
mx::array rope(const Context& context,
               const mx::array& x,
               const std::vector<RowSpan>& rows,
               const RopeSpec& spec);
mx::array rope_reference(const mx::array& x,
                         const std::vector<RowSpan>& rows,
                         const RopeSpec& spec);
mx::array rope_cpu(const Context& context,
                   const mx::array& x,
                   const std::vector<RowSpan>& rows,
                   const RopeSpec& spec);

}  // namespace sluice::kernels
