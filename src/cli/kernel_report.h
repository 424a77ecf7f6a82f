// What --check-kernels has to say at the end.
#pragma once

#include "engine/engine.h"

namespace sluice::cli {

// On stderr, a line for each op.
void print_kernel_report(const engine::Engine& engine);

}  // namespace sluice::cli
