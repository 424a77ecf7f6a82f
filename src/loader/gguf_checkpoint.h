// A GGUF file as a Checkpoint. Called by open_checkpoint.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "loader/checkpoint.h"

namespace sluice::loader {

Result<Checkpoint> open_gguf(const std::filesystem::path& path, const OpenOptions& options);

}  // namespace sluice::loader
