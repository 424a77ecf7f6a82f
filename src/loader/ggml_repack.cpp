#include "loader/ggml_repack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <thread>
#include <vector>

namespace sluice::loader {

static_assert(std::endian::native == std::endian::little, "blocks are read in place");

namespace {

constexpr int64_t kBlock = 32;
// Below this a second thread costs more than it saves: repacking runs at several GB/s.
constexpr int64_t kBytesPerThread = int64_t{8} << 20;
constexpr int64_t kMaxThreads = 8;  // memory-bound long before that

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float half_to_float(uint16_t bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
uint16_t float_to_half(float value) {
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}
bool finite_half(uint16_t bits) {
  return (bits & 0x7c00) != 0x7c00;
}

// Eight bytes with a value in each low nibble -> the eight nibbles packed.
uint32_t pack_nibbles(uint64_t bytes) {
  bytes = (bytes | bytes >> 4) & 0x00ff00ff00ff00ffu;
  bytes = (bytes | bytes >> 8) & 0x0000ffff0000ffffu;
  return static_cast<uint32_t>(bytes | bytes >> 16);
}

void reorder_nibbles(const std::byte* block, uint32_t* words) {
  constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0fu;
  const auto first = load<uint64_t>(block);
  const auto second = load<uint64_t>(block + 8);
  words[0] = pack_nibbles(first & kLow);
  words[1] = pack_nibbles(second & kLow);
  words[2] = pack_nibbles(first >> 4 & kLow);
  words[3] = pack_nibbles(second >> 4 & kLow);
}

// q + 128 as an unsigned byte is q with its top bit flipped.
void offset_bytes(const std::byte* block, uint32_t* words) {
  for (int i = 0; i < 8; ++i) words[i] = load<uint32_t>(block + 4 * i) ^ 0x80808080u;
}

// factor * d; exact, since factor is a power of two. False if it overflows.
bool set_bias(uint16_t d, float factor, uint16_t* bias) {
  *bias = float_to_half(factor * half_to_float(d));
  return finite_half(*bias);
}
bool set_bias(uint16_t d, float factor, float* bias) {
  *bias = factor * half_to_float(d);
  return true;
}
void set_value(uint16_t bits, uint16_t* value) {
  *value = bits;
}
void set_value(uint16_t bits, float* value) {
  *value = half_to_float(bits);
}

template <class Scale>
RepackOutcome repack_rows(const RepackSource& source,
                          const RepackTarget<Scale>& target,
                          int64_t begin,
                          int64_t end) {
  const int64_t row_blocks = source.columns / kBlock;
  const int64_t block_bytes = ggml_block(source.type).bytes;
  const int64_t block_words = repacked_bits(source.type);  // 32 values of b bits: b words
  bool finite = true;
  bool fits = true;
  for (int64_t row = begin; row < end; ++row) {
    const std::byte* block =
        source.blocks + source_row(row, source.interleaved_head_rows) * row_blocks * block_bytes;
    for (int64_t i = row * row_blocks; i < (row + 1) * row_blocks; ++i, block += block_bytes) {
      uint32_t* words = target.weight + i * block_words;
      const auto d = load<uint16_t>(block);
      finite &= finite_half(d);
      set_value(d, target.scales + i);
      switch (source.type) {
        case GgmlType::kQ4_0:
          fits &= set_bias(d, -8.0f, target.biases + i);
          reorder_nibbles(block + 2, words);
          break;
        case GgmlType::kQ4_1: {
          const auto m = load<uint16_t>(block + 2);
          finite &= finite_half(m);
          set_value(m, target.biases + i);
          reorder_nibbles(block + 4, words);
          break;
        }
        default:  // Q8_0
          fits &= set_bias(d, -128.0f, target.biases + i);
          offset_bytes(block + 2, words);
          break;
      }
    }
  }
  if (!finite) return RepackOutcome::kNonFinite;
  return fits ? RepackOutcome::kDone : RepackOutcome::kOverflow;
}

template <class Scale>
RepackOutcome repack_all(const RepackSource& source, const RepackTarget<Scale>& target) {
  const int64_t bytes = source.rows * (source.columns / kBlock) * ggml_block(source.type).bytes;
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t count =
      std::clamp(bytes / kBytesPerThread, int64_t{1}, std::min(kMaxThreads, cores));
  std::vector<RepackOutcome> outcomes(count, RepackOutcome::kDone);
  const auto part = [&](int64_t index) {
    outcomes[index] =
        repack_rows(source, target, source.rows * index / count, source.rows * (index + 1) / count);
  };
  std::vector<std::jthread> threads;
  for (int64_t i = 1; i < count; ++i) threads.emplace_back(part, i);
  part(0);
  threads.clear();  // joins
  return *std::max_element(outcomes.begin(), outcomes.end());
}

}  // namespace

int repacked_bits(GgmlType type) {
  return type == GgmlType::kQ8_0 ? 8 : 4;
}

RepackOutcome repack(const RepackSource& source, const RepackTarget<uint16_t>& target) {
  return repack_all(source, target);
}

RepackOutcome repack(const RepackSource& source, const RepackTarget<float>& target) {
  return repack_all(source, target);
}

}  // namespace sluice::loader
