// The own CPU linear kernel: single shapes by rows, all linear layers of a SmolLM2-135M token (each
// with its own weight, so that they come from memory as in a model), and the packing of them.
//
//   linear_bench [--benchmark_filter=...] [--benchmark_repetitions=5]
//
// bytes: packed weight read per second; flop: multiplications and additions per second. Threads:
// ThreadPool::default_size(). Instruction set variant: the best.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <vector>

#include "kernels/linear/linear.h"

namespace sluice::kernels {
namespace {

struct Shape {
  int k, n, bits;
};

// SmolLM2-135M: q, k, v, o, gate, up, down of a layer, and the head that shares the embedding.
const std::vector<Shape> kLayer = {{576, 576, 4},
                                   {576, 192, 4},
                                   {576, 192, 4},
                                   {576, 576, 4},
                                   {576, 1536, 4},
                                   {576, 1536, 4},
                                   {1536, 576, 4}};
constexpr int kLayers = 30;
const Shape kHead = {576, 49152, 8};
constexpr int kGroup = 32;

std::unique_ptr<Context> make_context() {
  return std::move(Context::create({})).value();
}

mx::array random_rows(int rows, int k) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(size_t{1} * rows * k);
  for (float& value : values) value = normal(random);
  return mx::array(values.begin(), {rows, k}, mx::float32);
}

struct Parts {
  mx::array weight, scales, biases;
};

// Any bits make a valid weight; small scales keep chains of layers finite.
Parts random_parts(const Shape& shape) {
  std::mt19937 random(shape.n);
  std::vector<uint32_t> words(size_t{1} * shape.n * shape.k * shape.bits / 32);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  const int groups = shape.k / kGroup;
  return {mx::array(words.begin(), {shape.n, shape.k * shape.bits / 32}, mx::uint32),
          mx::full({shape.n, groups}, 0.001f, mx::float16),
          mx::full({shape.n, groups}, -0.008f, mx::float16)};
}

LinearWeight pack(const Context& context, const Parts& parts, int bits, Activations activations) {
  return LinearWeight::affine(
      context, parts.weight, parts.scales, parts.biases, bits, kGroup, std::nullopt, activations);
}

Activations activations_of(int64_t int8) {
  return int8 != 0 ? Activations::kInt8 : Activations::kFloat32;
}

void report(benchmark::State& state, double bytes, double flop) {
  state.counters["bytes"] = {bytes, benchmark::Counter::kIsIterationInvariantRate};
  state.counters["flop"] = {flop, benchmark::Counter::kIsIterationInvariantRate};
}

// Arguments: rows, k, n, bits, int8 activations or float32.
void linear_bench(benchmark::State& state) {
  auto context = make_context();
  const int rows = static_cast<int>(state.range(0));
  const Shape shape{static_cast<int>(state.range(1)),
                    static_cast<int>(state.range(2)),
                    static_cast<int>(state.range(3))};
  const LinearWeight weight =
      pack(*context, random_parts(shape), shape.bits, activations_of(state.range(4)));
  const mx::array x = random_rows(rows, shape.k);
  for (auto _ : state) linear(*context, x, weight).eval();
  report(state, weight.nbytes(), 2.0 * rows * shape.k * shape.n);
}

// Arguments: rows, int8 activations or float32. The head is left out of many rows, as in a prefill.
void smollm2_bench(benchmark::State& state) {
  auto context = make_context();
  const int rows = static_cast<int>(state.range(0));
  const Activations activations = activations_of(state.range(1));
  std::vector<LinearWeight> weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const Shape& shape : kLayer) {
      weights.push_back(pack(*context, random_parts(shape), shape.bits, activations));
    }
  }
  if (rows <= 16) weights.push_back(pack(*context, random_parts(kHead), kHead.bits, activations));
  double bytes = 0, flop = 0;
  for (const LinearWeight& weight : weights) {
    bytes += static_cast<double>(weight.nbytes());
    flop += 2.0 * rows * weight.in_features() * weight.out_features();
  }
  const mx::array narrow = random_rows(rows, 576), wide = random_rows(rows, 1536);
  for (auto _ : state) {
    std::vector<mx::array> results;
    for (const LinearWeight& weight : weights) {
      results.push_back(linear(*context, weight.in_features() == 576 ? narrow : wide, weight));
    }
    mx::eval(results);
  }
  report(state, bytes, flop);
}

void packing_bench(benchmark::State& state) {
  auto context = make_context();
  std::vector<std::pair<Parts, int>> sources;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const Shape& shape : kLayer) sources.emplace_back(random_parts(shape), shape.bits);
  }
  sources.emplace_back(random_parts(kHead), kHead.bits);
  for (const auto& [parts, bits] : sources) mx::eval({parts.scales, parts.biases});
  for (auto _ : state) {
    std::vector<LinearWeight> weights;
    for (const auto& [parts, bits] : sources) {
      weights.push_back(pack(*context, parts, bits, Activations::kInt8));
    }
  }
}

BENCHMARK(linear_bench)
    ->ArgNames({"rows", "k", "n", "bits", "int8"})
    ->ArgsProduct({{1, 2, 4, 8, 512}, {576}, {192, 576, 1536}, {4}, {0, 1}})
    ->ArgsProduct({{1, 2, 4, 8, 512}, {1536}, {576}, {4}, {0, 1}})
    ->ArgsProduct({{1, 2, 4, 8}, {576}, {49152}, {8}, {0, 1}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(smollm2_bench)
    ->ArgNames({"rows", "int8"})
    ->ArgsProduct({{1, 2, 3, 4, 8, 512}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(packing_bench)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sluice::kernels

BENCHMARK_MAIN();
