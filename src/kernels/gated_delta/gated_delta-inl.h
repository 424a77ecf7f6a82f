// The own CPU kernel for one instruction set variant; gated_delta_kernels.h has the order of sums.
#include "kernels/gated_delta/gated_delta_kernels.h"
#include "kernels/simd/vec16-inl.h"

namespace sluice::kernels {
namespace {

using simd::F32x16;
using simd::kLanes;

// One walk over the state. Token t's update needs the sum over all k of the decayed state, so the
// state is walked count + 1 times: walk t finishes token t - 1 (if kUpdate) and decays and sums for
// token t (if kDecay). The tile stays in the first-level cache.
struct Walk {
  const float* source;
  float* target;
  const float* k_before;  // token t - 1
  const float* q_before;
  F32x16 delta;
  const float* k;  // token t
  const float* g;
};
struct Sums {
  F32x16 m, y;
};

template <bool kUpdate, bool kDecay, bool kQuery, bool kVectorGate, bool kStore>
SLUICE_SIMD Sums walk(const Walk& w, int dk) {
  const F32x16 zero = simd::set1(0.0f);
  F32x16 m[2] = {zero, zero}, y[2] = {zero, zero};
  F32x16 gate = zero;
  if constexpr (kDecay && !kVectorGate) gate = simd::set1(w.g[0]);
  for (int i = 0; i < dk; i += 2) {
#pragma GCC unroll 2
    for (int chain = 0; chain < 2; ++chain) {
      const int j = i + chain;
      F32x16 s = simd::load(w.source + j * kLanes);
      if constexpr (kUpdate) {
        s = simd::fma(simd::set1(w.k_before[j]), w.delta, s);
        if constexpr (kQuery) y[chain] = simd::fma(s, simd::set1(w.q_before[j]), y[chain]);
      }
      if constexpr (kDecay) {
        if constexpr (kVectorGate) gate = simd::set1(w.g[j]);
        s = gate * s;
        m[chain] = simd::fma(s, simd::set1(w.k[j]), m[chain]);
      }
      if constexpr (kStore) simd::store(w.target + j * kLanes, s);
    }
  }
  return {m[0] + m[1], y[0] + y[1]};
}

template <bool kQuery, bool kVectorGate>
void run_tokens(const DeltaPanel& p) {
  Walk w = {};
  for (int i = 0; i < p.count; ++i) {
    const int64_t token = p.tokens[i];
    w.k = p.k + token * p.k_stride;
    w.g = p.g + token * p.g_stride;
    w.target = p.tile;
    Sums sums;
    if (i == 0) {
      w.source = p.state_in;
      sums = walk<false, true, false, kVectorGate, true>(w, p.dk);
    } else {
      w.source = p.tile;
      sums = walk<true, true, kQuery, kVectorGate, true>(w, p.dk);
      if constexpr (kQuery) {
        simd::store_first(p.y + int64_t{p.tokens[i - 1]} * p.y_stride, sums.y, p.lanes);
      }
    }
    const F32x16 v = simd::load_first(p.v + token * p.v_stride, p.lanes);
    w.delta = (v - sums.m) * simd::set1(p.beta[token * p.beta_stride]);
    w.k_before = w.k;
    if constexpr (kQuery) w.q_before = p.q + token * p.q_stride;
  }
  w.source = p.tile;
  w.target = p.state_out;
  const Sums sums = p.state_out != nullptr ? walk<true, false, kQuery, kVectorGate, true>(w, p.dk)
                                           : walk<true, false, kQuery, kVectorGate, false>(w, p.dk);
  if constexpr (kQuery) {
    simd::store_first(p.y + int64_t{p.tokens[p.count - 1]} * p.y_stride, sums.y, p.lanes);
  }
}

void run(const DeltaPanel& p) {
  if (p.count == 0) {
    if (p.state_out == nullptr || p.state_out == p.state_in) return;
    for (int j = 0; j < p.dk; ++j) {
      simd::store(p.state_out + j * kLanes, simd::load(p.state_in + j * kLanes));
    }
  } else if (p.q != nullptr) {
    p.vector_gate ? run_tokens<true, true>(p) : run_tokens<true, false>(p);
  } else {
    p.vector_gate ? run_tokens<false, true>(p) : run_tokens<false, false>(p);
  }
}

}  // namespace
}  // namespace sluice::kernels
