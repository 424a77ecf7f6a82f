#include "loader/checkpoint.h"

#include <system_error>
#include <utility>

#include "loader/gguf_checkpoint.h"
#include "loader/mlx_folder.h"

namespace sluice::loader {

namespace {

namespace fs = std::filesystem;

// The only .gguf of a folder; nullopt if there is none.
Result<std::optional<fs::path>> single_gguf(const fs::path& folder) {
  std::optional<fs::path> result;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".gguf") continue;
    if (result) {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: holds several .gguf files; name one of them",
                        folder.string());
    }
    result = entry.path();
  }
  if (error) return make_error(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
  return result;
}

}  // namespace

Result<Checkpoint> open_checkpoint(const fs::path& path, const OpenOptions& options) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (!fs::exists(status)) {
    return make_error(ErrorCode::kNotFound,
                      "{}: no such file or folder; give an MLX model folder or a .gguf file",
                      path.string());
  }
  if (!fs::is_directory(status)) {
    if (path.extension() == ".safetensors") {
      return make_error(ErrorCode::kInvalidArgument,
                        "{}: give the folder that it lies in; config.json and the tokenizer are "
                        "needed too",
                        path.string());
    }
    return open_gguf(path, options);
  }
  if (fs::exists(path / "config.json")) return open_mlx_folder(path, options);
  SLUICE_TRY(const auto gguf, single_gguf(path));
  if (gguf) {
    SLUICE_TRY(Checkpoint checkpoint, open_gguf(*gguf, options));
    checkpoint.path = path;
    return checkpoint;
  }
  return make_error(ErrorCode::kNotFound,
                    "{}: holds neither config.json (an MLX model folder) nor a .gguf file",
                    path.string());
}

}  // namespace sluice::loader
