// GGML's block formats in MLX's affine layout, value for value the same weights: only bytes move.
// No MLX. Group 32 in all three:
//   Q4_0  w = d (q - 8)   -> 4 bit, scale d, bias -8 d
//   Q4_1  w = d q + m     -> 4 bit, scale d, bias m
//   Q8_0  w = d q         -> 8 bit, codes q + 128, scale d, bias -128 d
// d and m are float16 in the file, and -8 d and -128 d are exact in float16 unless they overflow;
// then (and only then) scales and biases must be float32.
//
// Nibbles: a GGML block has values 0-15 in the low nibbles of its 16 bytes and 16-31 in the high
// ones; MLX has consecutive values in consecutive nibbles, low first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "loader/ggml_type.h"

namespace sluice::loader {

struct RepackSource {
  GgmlType type = GgmlType::kUnknown;  // block-quantized
  const std::byte* blocks = nullptr;   // rows one after another
  int64_t rows = 0;
  int64_t columns = 0;  // a multiple of 32
  // > 0: output row h + i (i in head) comes from the row that llama.cpp's q/k permutation put it
  // in; rows is a multiple of it and it is even. See source_row().
  int interleaved_head_rows = 0;
};

// Caller-owned: weight rows * columns * bits / 32 words, scales and biases rows * columns / 32
// values each.
template <class Scale>  // uint16_t: float16 bits; float
struct RepackTarget {
  uint32_t* weight = nullptr;
  Scale* scales = nullptr;
  Scale* biases = nullptr;
};

enum class RepackOutcome {
  kDone,
  kOverflow,   // float16 targets only: a bias does not fit; use float
  kNonFinite,  // a scale or minimum in the file is infinite or not a number
};

// Bits of the affine form: 4 or 8.
int repacked_bits(GgmlType type);

// Fills the target, on several threads if it is large. Anything but kDone leaves it unspecified.
RepackOutcome repack(const RepackSource& source, const RepackTarget<uint16_t>& target);
RepackOutcome repack(const RepackSource& source, const RepackTarget<float>& target);

// The row of the file that belongs in output row `row`: llama.cpp stores a head's rows as
// (0, half, 1, half + 1, ...) of Hugging Face's order, so that its rope can rotate neighbours.
inline int64_t source_row(int64_t row, int head_rows) {
  if (head_rows <= 0) return row;
  const int64_t in_head = row % head_rows;
  const int64_t half = head_rows / 2;
  const int64_t place = in_head < half ? 2 * in_head : 2 * (in_head - half) + 1;
  return row - in_head + place;
}

}  // namespace sluice::loader
