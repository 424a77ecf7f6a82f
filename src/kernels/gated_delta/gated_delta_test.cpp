#include "kernels/gated_delta/gated_delta.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "kernels/kernel_test_util.h"

namespace sluice::kernels {
namespace {

using namespace testing;  // NOLINT: the helpers of this folder
using ::testing::HasSubstr;

struct Inputs {
  GatedDeltaShape shape;
  std::vector<float> q, k, v, g, beta;  // as the op takes them
  int tokens = 0;
  bool vector_gate = false;

  mx::array array(const std::vector<float>& values, int heads, int dim) const {
    return dim > 0 ? to_array(values, {tokens, heads, dim}) : to_array(values, {tokens, heads});
  }
  mx::array q_array() const { return array(q, shape.key_heads, shape.key_dim); }
  mx::array k_array() const { return array(k, shape.key_heads, shape.key_dim); }
  mx::array v_array() const { return array(v, shape.value_heads, shape.value_dim); }
  mx::array g_array() const { return array(g, shape.value_heads, vector_gate ? shape.key_dim : 0); }
  mx::array beta_array() const { return array(beta, shape.value_heads, 0); }
};

Inputs make_inputs(const GatedDeltaShape& s, int tokens, uint32_t seed, bool vector_gate = false) {
  Inputs in{s, {}, {}, {}, {}, {}, tokens, vector_gate};
  const size_t keys = size_t(tokens) * s.key_heads * s.key_dim;
  const float unit = 1.0f / std::sqrt(float(s.key_dim));
  in.q = normal_values(keys, seed, unit);
  in.k = normal_values(keys, seed + 1, unit);
  in.v = normal_values(size_t(tokens) * s.value_heads * s.value_dim, seed + 2);
  in.g = normal_values(size_t(tokens) * s.value_heads * (vector_gate ? s.key_dim : 1), seed + 3);
  for (float& g : in.g) g = std::exp(-std::abs(g));
  in.beta = normal_values(size_t(tokens) * s.value_heads, seed + 4);
  for (float& b : in.beta) b = 1 / (1 + std::exp(-b));
  return in;
}

// The recurrence in double over one row's tokens; y of all tokens, 0 for others'.
std::vector<double> model(const Inputs& in,
                          const std::vector<int32_t>& tokens,
                          std::vector<double>& state) {
  const auto& s = in.shape;
  std::vector<double> y(size_t(in.tokens) * s.value_heads * s.value_dim, 0.0);
  for (const int t : tokens) {
    for (int h = 0; h < s.value_heads; ++h) {
      const float* q = &in.q[(size_t(t) * s.key_heads + s.key_head_of(h)) * s.key_dim];
      const float* k = &in.k[(size_t(t) * s.key_heads + s.key_head_of(h)) * s.key_dim];
      const float* g = &in.g[(size_t(t) * s.value_heads + h) * (in.vector_gate ? s.key_dim : 1)];
      const double beta = in.beta[size_t(t) * s.value_heads + h];
      for (int r = 0; r < s.value_dim; ++r) {
        double* row = &state[(size_t(h) * s.value_dim + r) * s.key_dim];
        const size_t place = (size_t(t) * s.value_heads + h) * s.value_dim + r;
        double memory = 0;
        for (int i = 0; i < s.key_dim; ++i) {
          row[i] *= g[in.vector_gate ? i : 0];
          memory += row[i] * k[i];
        }
        const double delta = (in.v[place] - memory) * beta;
        for (int i = 0; i < s.key_dim; ++i) {
          row[i] += k[i] * delta;
          y[place] += row[i] * q[i];
        }
      }
    }
  }
  return y;
}

size_t state_size(const GatedDeltaShape& s) {
  return size_t(s.value_heads) * s.value_dim * s.key_dim;
}

mx::array random_state(const Context& context, const GatedDeltaShape& s, uint32_t seed) {
  return delta_state_of(
      context,
      s,
      to_array(normal_values(state_size(s), seed, 0.3f), {s.value_heads, s.value_dim, s.key_dim}));
}

std::vector<float> run(const Context& context,
                       const Inputs& in,
                       const std::vector<DeltaRow>& rows) {
  return to_values(gated_delta(context,
                               in.q_array(),
                               in.k_array(),
                               in.v_array(),
                               in.g_array(),
                               in.beta_array(),
                               in.shape,
                               rows));
}

const GatedDeltaShape kShapes[] = {{1, 1, 32, 16, false},
                                   {9, 9, 64, 64, false},
                                   {3, 6, 32, 48, false},
                                   {2, 6, 64, 20, true},
                                   {2, 2, 128, 128, false},
                                   {1, 3, 96, 7, false}};

TEST(GatedDelta, MatchesModelAndReference) {
  auto own = make_context();
  auto reference = make_reference_context();
  int64_t runs = 0;
  for (const auto& shape : kShapes) {
    for (const bool vector_gate : {false, true}) {
      for (const int tokens : {1, 2, 3, 37}) {
        const auto in = make_inputs(shape, tokens, 7 * tokens, vector_gate);
        auto own_state = random_state(*own, shape, 5),
             reference_state = random_state(*reference, shape, 5);
        const auto start = to_values(delta_state_values(*own, shape, own_state));
        std::vector<double> exact_state(start.begin(), start.end());
        const auto exact = model(in, token_range(0, tokens), exact_state);
        const auto y = run(*own, in, {{token_range(0, tokens), &own_state}});
        const auto composed = run(*reference, in, {{token_range(0, tokens), &reference_state}});
        // Each step rounds some key_dim times; errors decay with the state.
        const double bound = 8 * std::sqrt(double(shape.key_dim)) * kUnit;
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(y[i], exact[i], bound * (1 + std::abs(exact[i])));
          ASSERT_NEAR(composed[i], exact[i], bound * (1 + std::abs(exact[i])));
        }
        const auto state = to_values(delta_state_values(*own, shape, own_state));
        const auto other = to_values(delta_state_values(*reference, shape, reference_state));
        for (size_t i = 0; i < state.size(); ++i) {
          ASSERT_NEAR(state[i], exact_state[i], bound * (1 + std::abs(exact_state[i])));
          ASSERT_NEAR(other[i], exact_state[i], bound * (1 + std::abs(exact_state[i])));
        }
        ++runs;
      }
    }
  }
  EXPECT_EQ(own->kernel_runs(Op::kGatedDelta), runs);
  EXPECT_EQ(reference->kernel_runs(Op::kGatedDelta), 0);
}

TEST(GatedDelta, HalfPrecisionReferenceIsNearTheModel) {
  auto reference = make_reference_context();
  const GatedDeltaShape shape{2, 4, 32, 24, false};
  const auto in = make_inputs(shape, 12, 3);
  for (const auto dtype : {mx::float16, mx::bfloat16}) {
    auto state = zero_delta_state(*reference, shape);
    auto cast = [&](const mx::array& x) { return mx::astype(x, dtype); };
    auto y = gated_delta(*reference,
                         cast(in.q_array()),
                         cast(in.k_array()),
                         cast(in.v_array()),
                         in.g_array(),
                         cast(in.beta_array()),
                         shape,
                         {{token_range(0, 12), &state}});
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(state.dtype(), mx::float32);
    std::vector<double> exact_state(state_size(shape), 0.0);
    const auto exact = model(in, token_range(0, 12), exact_state);
    const auto values = to_values(y);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], exact[i], 0.05);
  }
}

TEST(GatedDelta, StatesSurviveTheWayThroughTheirLayout) {
  for (auto* make : {+[] { return make_context(); }, +[] { return make_reference_context(); }}) {
    auto context = make();
    for (const auto& shape : kShapes) {
      const auto values = normal_values(state_size(shape), 9);
      auto array = to_array(values, {shape.value_heads, shape.value_dim, shape.key_dim});
      auto state = delta_state_of(*context, shape, array);
      EXPECT_TRUE(same_bits(to_values(delta_state_values(*context, shape, state)), values));
      EXPECT_EQ(zero_delta_state(*context, shape).shape(), state.shape());
    }
  }
}

TEST(GatedDelta, MaskedTokensMoveNothingAndGiveZero) {
  const GatedDeltaShape shape{2, 4, 32, 24, false};
  for (auto* make : {+[] { return make_context(); }, +[] { return make_reference_context(); }}) {
    auto context = make();
    auto in = make_inputs(shape, 9, 21);
    // Tokens 1, 4, 5 and 8 are pads; whatever they hold reaches nothing.
    const std::vector<int32_t> listed = {0, 2, 3, 6, 7};
    Inputs compact = make_inputs(shape, 5, 1);
    auto copy_token =
        [](std::vector<float>& to, int t, const std::vector<float>& from, int u, int n) {
          std::copy_n(from.begin() + size_t(u) * n, n, to.begin() + size_t(t) * n);
        };
    for (int i = 0; i < 5; ++i) {
      copy_token(compact.q, i, in.q, listed[i], 64);
      copy_token(compact.k, i, in.k, listed[i], 64);
      copy_token(compact.v, i, in.v, listed[i], 96);
      copy_token(compact.g, i, in.g, listed[i], 4);
      copy_token(compact.beta, i, in.beta, listed[i], 4);
    }
    for (const int pad : {1, 4, 5, 8}) {
      std::fill_n(in.q.begin() + pad * 64, 64, NAN);
      std::fill_n(in.k.begin() + pad * 64, 64, INFINITY);
      std::fill_n(in.v.begin() + pad * 96, 96, NAN);
      std::fill_n(in.g.begin() + pad * 4, 4, NAN);
    }
    auto masked_state = random_state(*context, shape, 2), state = random_state(*context, shape, 2);
    const auto masked = run(*context, in, {{listed, &masked_state}});
    const auto alone = run(*context, compact, {{token_range(0, 5), &state}});
    for (int t = 0, i = 0; t < 9; ++t) {
      const bool pad = i >= 5 || listed[i] != t;
      const std::vector<float> got(masked.begin() + t * 96, masked.begin() + (t + 1) * 96);
      const std::vector<float> expected =
          pad ? std::vector<float>(96, 0.0f)
              : std::vector<float>(alone.begin() + i * 96, alone.begin() + (i + 1) * 96);
      EXPECT_TRUE(same_bits(got, expected)) << t;
      i += !pad;
    }
    EXPECT_TRUE(same_bits(to_values(delta_state_values(*context, shape, masked_state)),
                          to_values(delta_state_values(*context, shape, state))));
  }
}

TEST(GatedDelta, NoTokensLeaveTheStateAsItIs) {
  const GatedDeltaShape shape{2, 4, 32, 24, false};
  auto context = make_context();
  auto state = random_state(*context, shape, 2);
  const auto before = to_values(state);
  const auto in = make_inputs(shape, 3, 1);
  EXPECT_EQ(run(*context, in, {{{}, &state}}), std::vector<float>(3 * 96, 0.0f));
  EXPECT_TRUE(same_bits(to_values(state), before));
  const auto none = make_inputs(shape, 0, 1);
  auto empty = [&](mx::Shape s) { return mx::zeros(s, mx::float32); };
  auto y = gated_delta(*context,
                       empty({0, 2, 32}),
                       empty({0, 2, 32}),
                       empty({0, 4, 24}),
                       empty({0, 4}),
                       empty({0, 4}),
                       shape,
                       {{{}, &state}});
  EXPECT_EQ(y.shape(), (mx::Shape{0, 4, 24}));
}

TEST(GatedDelta, CheckModeRecordsTheErrorAndChangesNoResult) {
  const GatedDeltaShape shape{2, 4, 32, 24, false};
  auto check = make_check_context();
  auto own = make_context();
  const auto in = make_inputs(shape, 11, 4);
  auto a = random_state(*check, shape, 2), b = random_state(*own, shape, 2);
  EXPECT_TRUE(same_bits(run(*check, in, {{token_range(0, 11), &a}}),
                        run(*own, in, {{token_range(0, 11), &b}})));
  EXPECT_TRUE(same_bits(to_values(a), to_values(b)));
  const auto record = check->check_records().at(Op::kGatedDelta);
  EXPECT_EQ(record.calls, 1);
  EXPECT_GT(record.max_reference, 0.1);
  EXPECT_LT(record.max_abs_error, 1e-5);
}

TEST(GatedDelta, RejectsWrongInputs) {
  auto context = make_context();
  const GatedDeltaShape good{2, 4, 32, 24, false};
  auto state = zero_delta_state(*context, good);
  auto call = [&](const GatedDeltaShape& shape, std::vector<DeltaRow> rows, mx::Dtype dtype) {
    auto in = make_inputs(good, 4, 1);
    auto cast = [&](const mx::array& x) { return mx::astype(x, dtype); };
    return thrown_message([&] {
      gated_delta(*context,
                  cast(in.q_array()),
                  cast(in.k_array()),
                  cast(in.v_array()),
                  in.g_array(),
                  cast(in.beta_array()),
                  shape,
                  rows);
    });
  };
  EXPECT_THAT(call({2, 4, 48, 24, false}, {}, mx::float32), HasSubstr("multiple of 32"));
  EXPECT_THAT(call({2, 3, 32, 24, false}, {}, mx::float32), HasSubstr("multiple of the key heads"));
  EXPECT_THAT(call({2, 4, 64, 24, false}, {}, mx::float32), HasSubstr("k has shape"));
  EXPECT_THAT(call(good, {{{0, 4}, &state}}, mx::float32), HasSubstr("token 4"));
  EXPECT_THAT(call(good, {{{1, 0}, &state}}, mx::float32), HasSubstr("token 0 after 1"));
  EXPECT_THAT(call(good, {{{0, 1}, &state}, {{1}, &state}}, mx::float32), HasSubstr("row 1"));
  EXPECT_THAT(call(good, {}, mx::float16), HasSubstr("must be float32"));
}

// ---- exactness

// Random rows, packed or in a padded rectangle, cut at random into calls, some of them drafts of
// which a part is replayed: every row's outputs and state are those of the row alone, one token at
// a time.
void check_grouping(const Context& context, uint32_t seed) {
  std::mt19937 rng(seed);
  auto shape = kShapes[rng() % std::size(kShapes)];
  const bool vector_gate = rng() % 2;
  const int lengths[] = {0, 1, 2, 3, 17, 40};
  const int num_rows = 1 + rng() % 4;
  std::vector<Inputs> rows;
  std::vector<mx::array> states, alone_states;
  std::vector<std::vector<float>> expected(num_rows), got(num_rows);
  const size_t y_size = size_t(shape.value_heads) * shape.value_dim;
  for (int r = 0; r < num_rows; ++r) {
    rows.push_back(make_inputs(shape, lengths[rng() % 6], seed + 10 * r, vector_gate));
    states.push_back(random_state(context, shape, seed + r));
    alone_states.push_back(random_state(context, shape, seed + r));
  }
  auto take = [](const std::vector<float>& from, int tokens, int t) {
    const size_t n = tokens > 0 ? from.size() / tokens : 0;
    return std::vector<float>(from.begin() + t * n, from.begin() + (t + 1) * n);
  };
  auto append_token = [&](Inputs& to, const Inputs& from, int t) {
    auto append = [&](std::vector<float>& a, const std::vector<float>& b) {
      const auto one = take(b, from.tokens, t);
      a.insert(a.end(), one.begin(), one.end());
    };
    append(to.q, from.q), append(to.k, from.k), append(to.v, from.v);
    append(to.g, from.g), append(to.beta, from.beta);
    ++to.tokens;
  };
  for (int r = 0; r < num_rows; ++r) {
    for (int t = 0; t < rows[r].tokens; ++t) {
      Inputs one{shape, {}, {}, {}, {}, {}, 0, vector_gate};
      append_token(one, rows[r], t);
      const auto y = run(context, one, {{{0}, &alone_states[r]}});
      expected[r].insert(expected[r].end(), y.begin(), y.end());
    }
  }

  std::vector<int> done(num_rows, 0);
  const auto pad = make_inputs(shape, 1, seed + 99, vector_gate);
  for (bool busy = true; busy;) {
    busy = false;
    const bool rectangle = rng() % 2;
    Inputs call{shape, {}, {}, {}, {}, {}, 0, vector_gate};
    std::vector<DeltaRow> parts;
    std::vector<int> owners, counts, keeps;
    for (int r = 0; r < num_rows; ++r) {
      const int left = rows[r].tokens - done[r];
      busy |= left > 0;
      const int count = std::min<int>(left, rng() % 12);
      const bool settled = rng() % 3 != 0;
      parts.push_back({token_range(call.tokens, count), &states[r], settled});
      for (int i = 0; i < count; ++i) append_token(call, rows[r], done[r] + i);
      for (int i = count; rectangle && i < 12; ++i) append_token(call, pad, 0);
      owners.push_back(r), counts.push_back(count);
      keeps.push_back(settled ? count : rng() % (count + 1));
    }
    if (call.tokens == 0) continue;
    const auto y = run(context, call, parts);
    std::vector<DeltaRow> replays;
    for (size_t i = 0; i < parts.size(); ++i) {
      const int r = owners[i];
      for (int t = 0; t < keeps[i]; ++t) {
        const auto one = take(y, call.tokens, parts[i].tokens[t]);
        got[r].insert(got[r].end(), one.begin(), one.end());
      }
      done[r] += keeps[i];
      if (parts[i].settled) continue;
      replays.push_back(
          {{parts[i].tokens.begin(), parts[i].tokens.begin() + keeps[i]}, &states[r]});
    }
    auto inputs = std::vector{call.k_array(), call.v_array(), call.g_array(), call.beta_array()};
    mx::eval(inputs);
    gated_delta_replay(context, inputs[0], inputs[1], inputs[2], inputs[3], shape, replays);
  }
  for (int r = 0; r < num_rows; ++r) {
    ASSERT_EQ(got[r].size(), rows[r].tokens * y_size);
    ASSERT_TRUE(same_bits(got[r], expected[r])) << "seed " << seed << ", row " << r;
    ASSERT_TRUE(same_bits(to_values(states[r]), to_values(alone_states[r]))) << "seed " << seed;
  }
}

TEST(ContractGatedDelta, GroupingCutsAndReplaysMoveNoBit) {
  auto context = make_context();
  for (uint32_t seed = 0; seed < 60; ++seed) check_grouping(*context, 1000 * seed);
}

TEST(ContractGatedDelta, ReferenceRowsAreApart) {
  auto context = make_reference_context();
  for (uint32_t seed = 0; seed < 6; ++seed) check_grouping(*context, 1000 * seed);
}

TEST(ContractGatedDelta, ThreadsVariantsAndStridesMoveNoBit) {
  const GatedDeltaShape shape{3, 6, 64, 40, false};
  for (const bool vector_gate : {false, true}) {
    const auto in = make_inputs(shape, 21, 8, vector_gate);
    std::vector<float> first, first_state;
    for (Isa isa : supported_isas()) {
      for (int threads : {1, 2, 5}) {
        auto context = make_context(threads, isa);
        auto state = random_state(*context, shape, 3);
        const auto y = run(*context, in, {{token_range(0, 21), &state}});
        if (first.empty()) first = y, first_state = to_values(state);
        EXPECT_TRUE(same_bits(y, first)) << isa_name(isa) << ", " << threads;
        EXPECT_TRUE(same_bits(to_values(state), first_state)) << isa_name(isa) << ", " << threads;
      }
    }
    auto context = make_context();
    auto state = random_state(*context, shape, 3);
    auto y = gated_delta(*context,
                         strided(in.q_array()),
                         strided(in.k_array()),
                         strided(in.v_array()),
                         strided(in.g_array()),
                         strided(in.beta_array()),
                         shape,
                         {{token_range(0, 21), &state}});
    EXPECT_TRUE(same_bits(to_values(y), first));
  }
}

}  // namespace
}  // namespace sluice::kernels
