// Attention of one layer: prefill of N tokens at once, and decode at a context, by head shape. The
// default is SmolLM2-135M's: 9 query heads on 3 key-value heads of 64. Beside it, with argument
// reference=1, the composed MLX ops.
//
//   attention_bench [--benchmark_filter=...] [--benchmark_repetitions=5]
//
// Reports flops (products and sums of the causal half) and bytes (keys and values read, decode).
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/attention/attention.h"
#include "random_array.h"

namespace sluice::kernels {
namespace {

struct Setting {
  int heads, kv_heads, dim;
};

AttentionStorage make_storage(int pages, const Setting& s) {
  AttentionStorage storage{random_array({pages, s.kv_heads, s.dim, kPageSize}),
                           random_array({pages, s.kv_heads, kPageSize, s.dim})};
  return storage;
}

Setting setting(const benchmark::State& state) {
  return {static_cast<int>(state.range(1)),
          static_cast<int>(state.range(2)),
          static_cast<int>(state.range(3))};
}

std::unique_ptr<Context> make_context(bool reference) {
  ContextOptions options;
  if (reference) options.backend = Backend::kReference;
  return std::move(Context::create(options)).value();
}

// A pass of `count` tokens behind `first` positions.
void run(benchmark::State& state, int first, int count) {
  const Setting s = setting(state);
  auto context = make_context(state.range(4) != 0);
  const int pages = (first + count + kPageSize - 1) / kPageSize;
  auto storage = make_storage(pages, s);
  AttentionRow row{{0, count, first}, std::vector<int32_t>(pages)};
  std::iota(row.pages.begin(), row.pages.end(), 0);
  auto q = random_array({count, s.heads, s.dim});
  auto k = random_array({count, s.kv_heads, s.dim});
  auto v = random_array({count, s.kv_heads, s.dim});
  for (auto _ : state) {
    attention(*context, q, k, v, storage, {row}, {.scale = 0.125f}).eval();
    mx::eval({storage.keys, storage.values});
  }
  const double pairs = double(count) * first + double(count) * (count + 1) / 2;
  state.counters["flops"] = benchmark::Counter(pairs * s.heads * s.dim * 4,
                                               benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes"] = benchmark::Counter(8.0 * (first + count) * s.kv_heads * s.dim,
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void prefill(benchmark::State& state) {
  run(state, 0, static_cast<int>(state.range(0)));
}

void decode(benchmark::State& state) {
  run(state, static_cast<int>(state.range(0)) - 1, 1);
}

const std::vector<std::string> kNames = {"tokens", "heads", "kv_heads", "dim", "reference"};

BENCHMARK(prefill)
    ->ArgNames(kNames)
    ->Args({128, 9, 3, 64, 0})
    ->Args({512, 9, 3, 64, 0})
    ->Args({2048, 9, 3, 64, 0})
    ->Args({512, 16, 4, 128, 0})
    ->Args({512, 8, 2, 256, 0})
    ->Args({512, 9, 3, 64, 1})
    ->Unit(benchmark::kMicrosecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK(decode)
    ->ArgNames(kNames)
    ->Args({64, 9, 3, 64, 0})
    ->Args({512, 9, 3, 64, 0})
    ->Args({4096, 9, 3, 64, 0})
    ->Args({32768, 9, 3, 64, 0})
    ->Args({4096, 16, 4, 128, 0})
    ->Args({4096, 8, 2, 256, 0})
    ->Args({512, 9, 3, 64, 1})
    ->Args({4096, 9, 3, 64, 1})
    ->Unit(benchmark::kMicrosecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

}  // namespace
}  // namespace sluice::kernels

BENCHMARK_MAIN();
