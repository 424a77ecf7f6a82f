// rms_norm, swiglu and rope of one layer by tokens and width, and what an op costs that does next
// to nothing. With argument reference=1 the composed MLX ops.
//
//   elementwise_bench [--benchmark_filter=...] [--benchmark_repetitions=5]
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/swiglu/swiglu.h"
#include "random_array.h"

namespace sluice::kernels {
namespace {

std::unique_ptr<Context> make_context(const benchmark::State& state) {
  ContextOptions options;
  if (state.range(2) != 0) options.backend = Backend::kReference;
  return std::move(Context::create(options)).value();
}

// bytes: read and written per token and value.
void report(benchmark::State& state, double bytes) {
  state.counters["bytes"] = benchmark::Counter(bytes * state.range(0) * state.range(1),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

// A chain of kOps ops and one eval: the wait for the result is shared, as in a model.
constexpr int kOps = 30;

void rms_norm_bench(benchmark::State& state) {
  auto context = make_context(state);
  const int tokens = state.range(0), width = state.range(1);
  const auto x = random_array({tokens, width}), weight = random_array({width});
  for (auto _ : state) {
    auto y = x;
    for (int i = 0; i < kOps; ++i) y = rms_norm(*context, y, weight, 1e-5f);
    y.eval();
  }
  report(state, 8.0 * kOps);
}

void swiglu_bench(benchmark::State& state) {
  auto context = make_context(state);
  const int tokens = state.range(0), width = state.range(1);
  const auto x = random_array({tokens, width}), up = random_array({tokens, width});
  for (auto _ : state) {
    auto y = x;
    for (int i = 0; i < kOps; ++i) y = swiglu(*context, y, up);
    y.eval();
  }
  report(state, 12.0 * kOps);
}

void rope_bench(benchmark::State& state) {
  auto context = make_context(state);
  const int tokens = state.range(0), width = state.range(1);
  const auto x = random_array({tokens, width / 64, 64});
  RopeSpec spec;
  spec.dims = 64;
  int position = 0;
  for (auto _ : state) {
    auto y = x;
    // A new position each time, so that angles are computed once per pass and not once for ever.
    const std::vector<RowSpan> rows = {{0, tokens, ++position}};
    for (int i = 0; i < kOps; ++i) y = rope(*context, y, rows, spec);
    y.eval();
  }
  report(state, 8.0 * kOps);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"tokens", "width", "reference"})
      ->Unit(benchmark::kMicrosecond)
      ->MeasureProcessCPUTime()
      ->UseRealTime();
  for (int reference : {0, 1}) {
    for (int tokens : {1, 512}) bench->Args({tokens, 576, reference});
    bench->Args({512, 1536, reference});
  }
}

BENCHMARK(rms_norm_bench)->Apply(shapes);
BENCHMARK(swiglu_bench)->Apply(shapes);
BENCHMARK(rope_bench)->Apply(shapes);

}  // namespace
}  // namespace sluice::kernels

BENCHMARK_MAIN();
