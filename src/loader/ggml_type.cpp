#include "loader/ggml_type.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace sluice::loader {

namespace {

// Index = the number in a file, retired types included.
constexpr std::array<std::string_view, 42> kNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0"};

}  // namespace

GgmlType ggml_type_of(uint32_t number) {
  switch (number) {
    case 0:
      return GgmlType::kF32;
    case 1:
      return GgmlType::kF16;
    case 2:
      return GgmlType::kQ4_0;
    case 3:
      return GgmlType::kQ4_1;
    case 8:
      return GgmlType::kQ8_0;
    case 30:
      return GgmlType::kBF16;
    default:
      return GgmlType::kUnknown;
  }
}

std::string ggml_type_name(uint32_t number) {
  if (number < kNames.size()) return std::string(kNames[number]);
  return fmt::format("type {}", number);
}

const char* ggml_type_name(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return "F32";
    case GgmlType::kF16:
      return "F16";
    case GgmlType::kBF16:
      return "BF16";
    case GgmlType::kQ4_0:
      return "Q4_0";
    case GgmlType::kQ4_1:
      return "Q4_1";
    case GgmlType::kQ8_0:
      return "Q8_0";
    case GgmlType::kUnknown:
      break;
  }
  return "unknown";
}

GgmlBlock ggml_block(GgmlType type) {
  switch (type) {
    case GgmlType::kF32:
      return {1, 4};
    case GgmlType::kF16:
    case GgmlType::kBF16:
      return {1, 2};
    case GgmlType::kQ4_0:
      return {32, 2 + 16};
    case GgmlType::kQ4_1:
      return {32, 2 + 2 + 16};
    case GgmlType::kQ8_0:
      return {32, 2 + 32};
    case GgmlType::kUnknown:
      break;
  }
  return {};
}

}  // namespace sluice::loader
