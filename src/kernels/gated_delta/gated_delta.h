// The gated delta rule (Yang et al., 2024, "Gated Delta Networks"): per token and value head
//   S = g S;  m = S k;  d = beta (v - m);  S = S + d k^T;  y = S q
// with a float32 state S [Dv, Dk]. Reference: mlx-lm's gated_delta.gated_delta_ops, uncompiled.
//
// Rows are sequences; each lists its tokens of the pass in order, so packed rows, rows of a padded
// rectangle and masked rows are one thing: a token that no row lists moves no state, and its output
// is exactly 0. A settled row's state is replaced by the state after its last token; another row's
// state stays (design rule 3), until gated_delta_replay advances it by what was accepted.
//
// The own kernel writes states in place when its result is evaluated, so every pass must be
// evaluated, in order, before the next one is made of the same states.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/context.h"

namespace sluice::kernels {

struct GatedDeltaShape {
  int key_heads = 0;
  int value_heads = 0;  // a multiple of key_heads
  int key_dim = 0;      // a multiple of 32
  int value_dim = 0;
  // Value head h reads key head h / (value_heads / key_heads), or, if tiled (as GGUF files have
  // them), h % key_heads.
  bool tiled_heads = false;

  int key_head_of(int value_head) const {
    return tiled_heads ? value_head % key_heads : value_head / (value_heads / key_heads);
  }
};

// One row of a call.
struct DeltaRow {
  std::vector<int32_t>
      tokens;                  // indices into the call's N tokens, ascending; no two rows share one
  mx::array* state = nullptr;  // borrowed; replaced or written in place if settled
  bool settled = true;
};

// Rows of a packed pass: first, first + 1, ..., first + count - 1.
std::vector<int32_t> token_range(int first, int count);

// A zero state in the context's layout: [Hv, Dv, Dk] for the reference; for the own kernel panels
// of 16 value rows, [Hv, ceil(Dv / 16), Dk, 16]. Evaluated.
mx::array zero_delta_state(const Context& context, const GatedDeltaShape& shape);
// Between the context's layout and float32 [Hv, Dv, Dk]. Evaluated copies.
mx::array delta_state_values(const Context& context,
                             const GatedDeltaShape& shape,
                             const mx::array& state);
mx::array delta_state_of(const Context& context,
                         const GatedDeltaShape& shape,
                         const mx::array& values);

// q, k [N, Hk, Dk]; v [N, Hv, Dv]; g float32 [N, Hv], or [N, Hv, Dk] for a gate per key dimension;
// beta [N, Hv] -> y [N, Hv, Dv]. q, k, v, beta of one float dtype; own kernel: float32. N may be 0.
mx::array gated_delta(const Context& context,
                      const mx::array& q,
                      const mx::array& k,
                      const mx::array& v,
                      const mx::array& g,
                      const mx::array& beta,
                      const GatedDeltaShape& shape,
                      const std::vector<DeltaRow>& rows);
mx::array gated_delta_reference(const mx::array& q,
                                const mx::array& k,
                                const mx::array& v,
                                const mx::array& g,
                                const mx::array& beta,
                                const GatedDeltaShape& shape,
                                const std::vector<DeltaRow>& rows);
mx::array gated_delta_cpu(const Context& context,
                          const mx::array& q,
                          const mx::array& k,
                          const mx::array& v,
                          const mx::array& g,
                          const mx::array& beta,
                          const GatedDeltaShape& shape,
                          const std::vector<DeltaRow>& rows);

// Advances every row's state by its tokens, settled or not; no query and no output. The inputs must
// be evaluated; the states are when it returns. Same bits as gated_delta over the same tokens.
void gated_delta_replay(const Context& context,
                        const mx::array& k,
                        const mx::array& v,
                        const mx::array& g,
                        const mx::array& beta,
                        const GatedDeltaShape& shape,
                        const std::vector<DeltaRow>& rows);
void gated_delta_replay_cpu(const Context& context,
                            const mx::array& k,
                            const mx::array& v,
                            const mx::array& g,
                            const mx::array& beta,
                            const GatedDeltaShape& shape,
                            const std::vector<DeltaRow>& rows);

}  // namespace sluice::kernels
