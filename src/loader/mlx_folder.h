// An MLX safetensors folder as a Checkpoint. Called by open_checkpoint.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/checkpoint.h"

namespace sluice::loader {

Result<Checkpoint> open_mlx_folder(const std::filesystem::path& path, const OpenOptions& options);

// The weight files of a folder: those of model.safetensors.index.json, else model.safetensors, else
// model*.safetensors. With an index every tensor must lie in the shard that the index names, and no
// other may be there (kCorruptFile).
Result<std::vector<StoredTensor>> map_safetensors(const std::filesystem::path& folder);

}  // namespace sluice::loader
