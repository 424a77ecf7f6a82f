#include "loader/mlx_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"
#include "loader/json_text.h"
#include "loader/quantization_config.h"
#include "loader/safetensors.h"
#include "loader/tokenizer_files.h"

namespace sluice::loader {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "model.safetensors.index.json";
// Real models have up to a few hundred; the limit keeps a hostile index from opening the world.
constexpr size_t kMaxShards = 10000;

using Index = std::map<std::string, std::string>;  // tensor -> shard file name

// A shard is a file of this folder: no path, no way out of it, and not the index itself.
bool is_shard_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.find('/') == std::string::npos &&
         name.find('\\') == std::string::npos && name.find('\0') == std::string::npos;
}

Result<Index> read_index(const fs::path& path) {
  SLUICE_TRY(const auto json, read_json_object(path));
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) {
    return make_error(ErrorCode::kCorruptFile, "{}: has no object weight_map", path.string());
  }
  Index index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string() || !is_shard_name(shard.get<std::string>())) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: tensor {} is said to lie in {}; shards are *.safetensors files of "
                        "the same folder",
                        path.string(),
                        tensor,
                        shard.dump());
    }
    index[tensor] = shard.get<std::string>();
  }
  return index;
}

// Shard names, sorted.
Result<std::vector<std::string>> find_shards(const fs::path& folder, const Index& index) {
  std::set<std::string> names;
  for (const auto& [tensor, shard] : index) names.insert(shard);
  if (names.empty() && fs::exists(folder / "model.safetensors")) names.insert("model.safetensors");
  if (names.empty()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("model") && is_shard_name(name)) names.insert(name);
    }
    if (error) {
      return make_error(ErrorCode::kIo, "{}: {}", folder.string(), error.message());
    }
  }
  if (names.empty()) {
    return make_error(ErrorCode::kNotFound,
                      "{}: holds no model*.safetensors; sluice reads MLX safetensors folders and "
                      ".gguf files",
                      folder.string());
  }
  if (names.size() > kMaxShards) {
    return make_error(
        ErrorCode::kCorruptFile, "{}: names {} shards", folder.string(), names.size());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

// Adds a shard's tensors and checks them against the index, if there is one.
Status add_shard(const fs::path& path,
                 const Index& index,
                 std::map<std::string, StoredTensor>& tensors) {
  SLUICE_TRY(const auto file, MappedFile::open(path));
  SLUICE_TRY(auto entries, parse_safetensors(file->bytes(), path.string()));
  const std::string shard = path.filename().string();
  for (auto& entry : entries) {
    if (!index.empty()) {
      const auto listed = index.find(entry.name);
      if (listed == index.end() || listed->second != shard) {
        return make_error(ErrorCode::kCorruptFile,
                          "{}: holds tensor {}, which {} puts {}",
                          path.string(),
                          entry.name,
                          kIndexName,
                          listed == index.end() ? std::string("nowhere") : "in " + listed->second);
      }
    }
    StoredTensor stored;
    stored.name = entry.name;
    stored.source_name = entry.name;
    stored.dtype = entry.dtype;
    stored.shape = std::move(entry.shape);
    stored.file = file;
    stored.data = entry.data.data();
    stored.bytes = entry.data.size();
    if (!tensors.emplace(entry.name, std::move(stored)).second) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: tensor {} is in another shard too",
                        path.string(),
                        entry.name);
    }
  }
  return {};
}

}  // namespace

Result<std::vector<StoredTensor>> map_safetensors(const fs::path& folder) {
  Index index;
  if (fs::exists(folder / kIndexName)) {
    SLUICE_TRY(index, read_index(folder / kIndexName));
  }
  SLUICE_TRY(const auto shards, find_shards(folder, index));
  std::map<std::string, StoredTensor> tensors;
  for (const auto& shard : shards) SLUICE_TRY_STATUS(add_shard(folder / shard, index, tensors));
  for (const auto& [name, shard] : index) {
    if (tensors.contains(name)) continue;
    return make_error(ErrorCode::kCorruptFile,
                      "{}: tensor {} is missing; {} puts it there",
                      (folder / shard).string(),
                      name,
                      kIndexName);
  }
  std::vector<StoredTensor> result;
  for (auto& [name, tensor] : tensors) result.push_back(std::move(tensor));
  return result;
}

Result<Checkpoint> open_mlx_folder(const fs::path& path, const OpenOptions& options) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "mlx-safetensors";
  SLUICE_TRY(checkpoint.config, read_json_object(path / "config.json"));
  const auto type = checkpoint.config.find("model_type");
  if (type == checkpoint.config.end() || !type->is_string()) {
    return make_error(
        ErrorCode::kCorruptFile, "{}: has no string model_type", (path / "config.json").string());
  }
  // mlx-lm ignores a broken generation_config.json; the stop tokens in it are too important for
  // that.
  checkpoint.generation_config = nlohmann::json::object();
  if (fs::exists(path / "generation_config.json")) {
    SLUICE_TRY(checkpoint.generation_config, read_json_object(path / "generation_config.json"));
  }
  SLUICE_TRY(auto quantization, QuantizationConfig::parse(checkpoint.config));
  SLUICE_TRY(auto tensors, map_safetensors(path));
  std::set<const MappedFile*> files;
  for (const auto& tensor : tensors) {
    if (files.insert(tensor.file.get()).second) checkpoint.file_bytes += tensor.file->size();
  }
  checkpoint.weights = WeightMap(std::move(tensors), std::move(quantization), options.progress);
  checkpoint.tokenizer_config = nlohmann::json::object();
  SLUICE_TRY_STATUS(read_special_tokens(checkpoint));
  if (options.tokenizer) SLUICE_TRY_STATUS(read_tokenizer_files(checkpoint));
  return checkpoint;
}

}  // namespace sluice::loader
