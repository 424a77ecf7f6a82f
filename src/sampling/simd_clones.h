// SLUICE_SIMD_CLONES before a function: the compiler makes a variant for AVX-512, AVX2 and the
// baseline, and the loader picks one. For loops whose bits cannot depend on the vector width:
// integers, comparisons, and IEEE operations lane by lane (-ffp-contract=off keeps FMA out).
#pragma once

// Under a sanitizer the resolver would run before its runtime is up.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define SLUICE_SIMD_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SLUICE_SIMD_CLONES
#endif
