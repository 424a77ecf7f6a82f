// What one sequence owns of one gated-delta layer: the convolution's tail, the recurrent state,
// and, between a tentative pass and its commit, the inputs from which the state can be advanced.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/result.h"
#include "kernels/causal_conv/causal_conv.h"
#include "kernels/gated_delta/gated_delta.h"

namespace sluice::cache {

// The same for every gated-delta layer of a model.
struct GatedDeltaLayout {
  int layers = 0;
  kernels::GatedDeltaShape shape;
  int conv_taps = 0;
  int conv_channels = 0;
  mx::Dtype conv_dtype = mx::float32;

  // Bytes of one sequence's slots of all layers, in the context's layout.
  size_t nbytes(const kernels::Context& context) const;
};

// Position-local inputs of a tentative pass, of all its rows: what the recurrence took, after
// projection, convolution and normalisation, and the convolution's own input. Arrays of the pass
// are shared, not copied; they go at commit.
struct DeltaRecord {
  mx::array conv_input;         // [N, C]
  mx::array k;                  // [N, Hk, Dk]
  mx::array v;                  // [N, Hv, Dv]
  mx::array g;                  // float32 [N, Hv]
  mx::array beta;               // [N, Hv]
  std::vector<int32_t> tokens;  // of this row
};

// Engine thread only. Arrays that an own kernel writes in place: nobody may keep a copy of their
// handles over a pass.
class GatedDeltaSlot {
 public:
  // Zeros: nothing seen yet.
  GatedDeltaSlot(const kernels::Context& context, const GatedDeltaLayout& layout);

  // Handles that the kernels read, and replace or write in place for settled rows.
  mx::array& tail() { return tail_; }
  mx::array& state() { return state_; }
  const mx::array& tail() const { return tail_; }
  const mx::array& state() const { return state_; }

  // A tentative pass leaves its inputs here. A second one before the commit is an error.
  void record(DeltaRecord record);
  bool recorded() const { return record_.has_value(); }

  // Advances tail and state by the first keep recorded tokens (0 to all; the pass must have been
  // evaluated) and drops the record: afterwards both are, bit for bit, what a settled pass over
  // those tokens leaves. Reads no weight matrix. Throws if nothing is recorded or keep is out of
  // range; then nothing has changed.
  void commit(const kernels::Context& context, const GatedDeltaLayout& layout, int keep);
  void drop_record() { record_.reset(); }

  size_t nbytes() const { return tail_.nbytes() + state_.nbytes(); }

  // A deep copy, and back. No pass may be open.
  struct Snapshot {
    mx::array tail, state;
    size_t nbytes() const { return tail.nbytes() + state.nbytes(); }
  };
  Snapshot snapshot() const;
  void restore(const Snapshot& snapshot);

 private:
  mx::array tail_;   // [taps - 1, C]
  mx::array state_;  // kernels::zero_delta_state's layout
  std::optional<DeltaRecord> record_;
};

}  // namespace sluice::cache
