// What a fuzz target provides. It is libFuzzer's own entry point, so that the same file also builds
// with clang's -fsanitize=fuzzer; fuzz_driver.cpp runs it with any compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Must return 0, and neither crash nor throw, for all data.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Well-formed inputs to mutate, small, at least one.
std::vector<std::string> fuzz_seeds();
