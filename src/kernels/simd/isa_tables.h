// How an op finds its kernels for an instruction set variant: every <op>_<isa>.cpp defines one
// `extern const Table name_<isa>`; SLUICE_ISA_TABLES(Table, name), in the op's <op>_cpu.cpp,
// declares them and the function `const Table& name(Isa)` that picks one. Only variants that
// Context::create let through arrive. SLUICE_VNNI_ISA_TABLES is for ops that have a variant of
// their own for processors with integer dot products. Not for the translation units of the variants
// themselves.
#pragma once

#include "kernels/context.h"

#if defined(__x86_64__)
#define SLUICE_ISA_TABLES(Table, name) \
  extern const Table name##_generic;   \
  extern const Table name##_avx2;      \
  extern const Table name##_avx512;    \
  inline const Table& name(Isa isa) {  \
    switch (isa) {                     \
      case Isa::kGeneric:              \
        return name##_generic;         \
      case Isa::kAvx2:                 \
      case Isa::kAvxVnni:              \
        return name##_avx2;            \
      case Isa::kAvx512:               \
      case Isa::kAvx512Vnni:           \
        return name##_avx512;          \
    }                                  \
    return name##_generic;             \
  }
#define SLUICE_VNNI_ISA_TABLES(Table, name) \
  extern const Table name##_generic;        \
  extern const Table name##_avx2;           \
  extern const Table name##_avxvnni;        \
  extern const Table name##_avx512;         \
  extern const Table name##_avx512vnni;     \
  inline const Table& name(Isa isa) {       \
    switch (isa) {                          \
      case Isa::kGeneric:                   \
        return name##_generic;              \
      case Isa::kAvx2:                      \
        return name##_avx2;                 \
      case Isa::kAvxVnni:                   \
        return name##_avxvnni;              \
      case Isa::kAvx512:                    \
        return name##_avx512;               \
      case Isa::kAvx512Vnni:                \
        return name##_avx512vnni;           \
    }                                       \
    return name##_generic;                  \
  }
#else
#define SLUICE_ISA_TABLES(Table, name) \
  extern const Table name##_generic;   \
  inline const Table& name(Isa) {      \
    return name##_generic;             \
  }
#define SLUICE_VNNI_ISA_TABLES SLUICE_ISA_TABLES
#endif
