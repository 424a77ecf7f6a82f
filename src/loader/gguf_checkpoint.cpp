#include "loader/gguf_checkpoint.h"

#include <memory>
#include <unordered_set>
#include <utility>

#include "base/mapped_file.h"
#include "loader/gguf_config.h"
#include "loader/gguf_file.h"
#include "loader/gguf_tokenizer.h"

namespace sluice::loader {

namespace {

Result<std::vector<StoredTensor>> stored_tensors(const std::shared_ptr<const MappedFile>& mapped,
                                                 const GgufFile& file,
                                                 const nlohmann::json& config) {
  SLUICE_TRY(const auto architecture, file.metadata.require_string("general.architecture"));
  std::vector<StoredTensor> tensors;
  std::unordered_set<std::string> names;
  for (const auto& tensor : file.tensors) {
    SLUICE_TRY(GgufTensorRole role, gguf_tensor_role(tensor, architecture, config));
    if (role.folded_into_config) continue;
    if (!names.insert(role.name).second) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: has two tensors for {}",
                        mapped->path().string(),
                        role.name);
    }
    StoredTensor stored;
    stored.name = std::move(role.name);
    stored.source_name = tensor.name;
    stored.shape = tensor.shape;
    stored.file = mapped;
    stored.data = tensor.data.data();
    stored.bytes = tensor.data.size();
    stored.ggml_type = tensor.type;
    stored.interleaved_head_rows = role.interleaved_head_rows;
    tensors.push_back(std::move(stored));
  }
  return tensors;
}

}  // namespace

Result<Checkpoint> open_gguf(const std::filesystem::path& path, const OpenOptions& options) {
  SLUICE_TRY(const auto mapped, MappedFile::open(path));
  SLUICE_TRY(const GgufFile file, GgufFile::parse(mapped->bytes(), path.string()));
  Checkpoint checkpoint;
  checkpoint.path = path;
  checkpoint.format = "gguf";
  checkpoint.file_bytes = mapped->size();
  checkpoint.generation_config = nlohmann::json::object();
  checkpoint.tokenizer_config = nlohmann::json::object();
  SLUICE_TRY(checkpoint.config, config_from_gguf(file));
  SLUICE_TRY(auto tensors, stored_tensors(mapped, file, checkpoint.config));
  checkpoint.weights = WeightMap(std::move(tensors), QuantizationConfig(), options.progress);
  if (!options.tokenizer) return checkpoint;

  SLUICE_TRY(GgufTokenizer tokenizer, tokenizer_from_gguf(file.metadata));
  checkpoint.tokenizer_json = std::move(tokenizer.tokenizer_json);
  checkpoint.tokenizer_config = std::move(tokenizer.tokenizer_config);
  checkpoint.chat_template = std::move(tokenizer.chat_template);
  checkpoint.tool_chat_template = std::move(tokenizer.tool_chat_template);
  checkpoint.bos_token_id = tokenizer.bos_token_id;
  checkpoint.add_bos = tokenizer.add_bos;
  checkpoint.eos_token_ids = std::move(tokenizer.eos_token_ids);
  if (!checkpoint.eos_token_ids.empty()) {
    checkpoint.config["eos_token_id"] = checkpoint.eos_token_ids;
  }
  if (checkpoint.bos_token_id) checkpoint.config["bos_token_id"] = *checkpoint.bos_token_id;
  return checkpoint;
}

}  // namespace sluice::loader
