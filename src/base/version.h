// What this build is, for `sluice --version`, logs and bug reports.
#pragma once

#include <string>

namespace sluice {

// The project's version, such as "0.1.0" (CMakeLists.txt). Static storage, never null.
const char* version();

// The git commit that CMake saw when it configured this build: ten hex digits, with "-dirty" after
// them if the tree had changes, or "unknown" outside a git tree. Static storage, never null.
const char* revision();

// Everything in one line: "sluice 0.1.0 (0123456789, MLX 0.32.4, gcc 12.2.0)". The MLX version is
// the pinned one (cmake/sluice_pins.cmake), whose headers this build was compiled against.
std::string version_line();

}  // namespace sluice
