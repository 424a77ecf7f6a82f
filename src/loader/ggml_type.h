// GGML's tensor types: names and block geometry. Numbers as in ggml.h (enum ggml_type), sizes as in
// ggml-common.h.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::loader {

// The types that sluice reads; every other number is kUnknown (ggml_type_name still names it).
enum class GgmlType {
  kUnknown,
  kF32,
  kF16,
  kBF16,
  kQ4_0,  // 32 values: f16 d, 16 bytes of nibbles; w = d * (q - 8)
  kQ4_1,  // 32 values: f16 d, f16 m, 16 bytes of nibbles; w = d * q + m
  kQ8_0,  // 32 values: f16 d, 32 int8; w = d * q
};

// The type with this number in a file.
GgmlType ggml_type_of(uint32_t number);
// "Q4_K", "IQ2_XXS", ..., or "type 77" for a number that ggml has not given out (as of 2026-10).
std::string ggml_type_name(uint32_t number);
// "Q4_1": of a readable type.
const char* ggml_type_name(GgmlType type);

// Values and bytes of one block of a readable type (1 value for the dense ones).
struct GgmlBlock {
  uint32_t values = 0;
  uint32_t bytes = 0;
};
GgmlBlock ggml_block(GgmlType type);

inline bool is_block_quantized(GgmlType type) {
  return type == GgmlType::kQ4_0 || type == GgmlType::kQ4_1 || type == GgmlType::kQ8_0;
}

}  // namespace sluice::loader
