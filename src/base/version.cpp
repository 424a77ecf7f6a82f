#include "base/version.h"

#include <fmt/format.h>

// SLUICE_VERSION, SLUICE_REVISION and SLUICE_MLX_VERSION come from cmake/sluice_version.cmake.
namespace sluice {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "gcc " __VERSION__;
#endif

}  // namespace

const char* version() {
  return SLUICE_VERSION;
}

const char* revision() {
  return SLUICE_REVISION;
}

std::string version_line() {
  return fmt::format(
      "sluice {} ({}, MLX {}, {})", version(), revision(), SLUICE_MLX_VERSION, kCompiler);
}

}  // namespace sluice
