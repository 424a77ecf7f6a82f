// A small deterministic mutation fuzzer: iteration i of seed s is always the same input, so a
// failure is repeated by its number alone (--first I --iterations 1). Run it in the asan build to
// see reads out of bounds; without sanitizers it limits the address space, so that an allocation
// that the input does not justify fails.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>

#include "fuzz_target.h"

namespace {

constexpr uint64_t kMaxInput = 1 << 16;
constexpr rlim_t kAddressSpace = rlim_t{1} << 30;
constexpr std::array<uint64_t, 14> kInteresting = {0,
                                                   1,
                                                   2,
                                                   7,
                                                   8,
                                                   31,
                                                   32,
                                                   255,
                                                   0x7fff,
                                                   0x7fffffff,
                                                   0x80000000,
                                                   0xffffffff,
                                                   0x7fffffffffffffff,
                                                   0xffffffffffffffff};

using Random = std::mt19937_64;

size_t below(Random& random, size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

void overwrite_number(Random& random, std::string& input) {
  constexpr size_t kWidths[] = {1, 2, 4, 8};
  const size_t width = kWidths[below(random, 4)];
  if (input.size() < width) return;
  uint64_t value = kInteresting[below(random, kInteresting.size())];
  if (random() % 4 == 0) value = input.size() + below(random, 65) - 32;
  std::memcpy(input.data() + below(random, input.size() - width + 1), &value, width);
}

void mutate_once(Random& random, const std::vector<std::string>& seeds, std::string& input) {
  const size_t at = below(random, input.size());
  const size_t length = below(random, std::min<size_t>(input.size() - at, 64) + 1);
  switch (random() % 7) {
    case 0:
      if (!input.empty()) input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
      break;
    case 1:
      if (!input.empty()) input[at] = static_cast<char>(random());
      break;
    case 2:
    case 3:
      overwrite_number(random, input);
      break;
    case 4:
      input.erase(at, length);
      break;
    case 5:
      if (input.size() < kMaxInput) input.insert(at, input.substr(at, length));
      break;
    default: {
      const std::string& other = seeds[below(random, seeds.size())];
      const size_t from = below(random, other.size());
      input.replace(at, length, other.substr(from, below(random, 64)));
      break;
    }
  }
}

std::string make_input(uint64_t seed, uint64_t iteration, const std::vector<std::string>& seeds) {
  std::seed_seq sequence{seed, seed >> 32, iteration, iteration >> 32};
  Random random(sequence);
  std::string input = seeds[below(random, seeds.size())];
  if (iteration < seeds.size()) return seeds[iteration];
  if (random() % 16 == 0) input.resize(below(random, input.size() + 1));
  const size_t count = 1 + below(random, 8);
  for (size_t i = 0; i < count; ++i) mutate_once(random, seeds, input);
  return input;
}

void limit_address_space() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit limit{kAddressSpace, kAddressSpace};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs a fuzz target on mutated inputs"};
  uint64_t iterations = 1000, first = 0, seed = 1;
  bool verbose = false;
  app.add_option("--iterations", iterations, "inputs to try");
  app.add_option("--first", first, "number of the first input");
  app.add_option("--seed", seed, "of the mutations");
  app.add_flag("--verbose", verbose, "print each input's number before running it");
  CLI11_PARSE(app, argc, argv);
  limit_address_space();

  const auto seeds = fuzz_seeds();
  for (uint64_t i = first; i < first + iterations; ++i) {
    const std::string input = make_input(seed, i, seeds);
    if (verbose) std::fprintf(stderr, "input %llu\n", static_cast<unsigned long long>(i));
    // Exactly as large as the input, so that a sanitizer sees the first byte too far.
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[input.size()]);
    std::memcpy(copy.get(), input.data(), input.size());
    try {
      LLVMFuzzerTestOneInput(copy.get(), input.size());
    } catch (const std::exception& cause) {
      std::fprintf(stderr,
                   "input %llu of seed %llu threw: %s\n",
                   static_cast<unsigned long long>(i),
                   static_cast<unsigned long long>(seed),
                   cause.what());
      return 1;
    }
  }
  std::printf("%llu inputs, no crash\n", static_cast<unsigned long long>(iterations));
  return 0;
}
