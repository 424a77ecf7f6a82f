#include "loader/weight_map.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "loader/materialize.h"
#include "tensor/checks.h"

namespace sluice::loader {

namespace {

constexpr int kMaxListed = 20;

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

struct Entry {
  StoredTensor tensor;
  bool consumed = false;
};

// "model.norm.weight (output_norm.weight in model.gguf)".
std::string describe(const StoredTensor& tensor) {
  const std::string file = tensor.file ? tensor.file->path().string() : "memory";
  if (tensor.source_name == tensor.name) return fmt::format("{} in {}", tensor.name, file);
  return fmt::format("{} ({} in {})", tensor.name, tensor.source_name, file);
}

std::string stem(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot);
}

}  // namespace

struct WeightMap::State {
  std::map<std::string, Entry> entries;
  QuantizationConfig quantization;
  Progress progress;
  uint64_t total = 0;
  uint64_t done = 0;
  std::string files;  // for "missing" messages

  Entry* find(const std::string& name) {
    const auto found = entries.find(name);
    return found == entries.end() ? nullptr : &found->second;
  }

  Error missing(const std::string& name) const {
    return make_error(ErrorCode::kNotFound,
                      "{}: tensor {} is missing; is this the model that its config says it is?",
                      files,
                      name);
  }

  void consume(Entry& entry) {
    entry.consumed = true;
    done += entry.tensor.bytes;
    if (progress) progress(done, total);
  }

  // The entry, present, unconsumed and of this shape.
  Result<Entry*> claim(const std::string& name, const std::vector<int64_t>& shape) {
    Entry* entry = find(name);
    if (!entry) return missing(name);
    if (entry->consumed) {
      return make_error(
          ErrorCode::kInvalidArgument, "tensor {} is asked for twice", describe(entry->tensor));
    }
    if (entry->tensor.shape != shape) {
      return make_error(ErrorCode::kCorruptFile,
                        "tensor {} has shape {}; the config makes it {}",
                        describe(entry->tensor),
                        shape_text(entry->tensor.shape),
                        shape_text(shape));
    }
    return entry;
  }

  Result<Entry*> claim_float(const std::string& name, const std::vector<int64_t>& shape) {
    SLUICE_TRY(Entry * entry, claim(name, shape));
    if (!is_float(entry->tensor)) {
      return make_error(ErrorCode::kUnsupported,
                        "tensor {} is {}; here it must be float32, float16 or bfloat16",
                        describe(entry->tensor),
                        element_kind(entry->tensor));
    }
    return entry;
  }

  Result<AffineFormat> format_of(const std::string& module_path, int in_features) const {
    const auto format = quantization.format_of(module_path);
    if (!format) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: {} has .scales, but config.json's quantization does not cover it",
                        files,
                        module_path);
    }
    if (in_features % format->group_size != 0) {
      return make_error(ErrorCode::kCorruptFile,
                        "config.json: {} has {} inputs, no multiple of its quantization group of "
                        "{}",
                        module_path,
                        in_features,
                        format->group_size);
    }
    return *format;
  }

  Result<AffineMatrix> take_affine(const std::string& module_path, int out, int in) {
    SLUICE_TRY(const AffineFormat format, format_of(module_path, in));
    const int64_t groups = in / format.group_size;
    const auto weight = claim(module_path + ".weight", {out, int64_t{in} * format.bits / 32});
    if (!weight.ok()) {
      return make_error(weight.error().code,
                        "{} (config.json: {} bits in groups of {})",
                        weight.error().message,
                        format.bits,
                        format.group_size);
    }
    SLUICE_TRY(Entry * scales, claim_float(module_path + ".scales", {out, groups}));
    SLUICE_TRY(Entry * biases, claim_float(module_path + ".biases", {out, groups}));
    if ((*weight)->tensor.dtype != "U32") {
      return make_error(ErrorCode::kCorruptFile,
                        "tensor {} is {}; a quantized weight must be uint32",
                        describe((*weight)->tensor),
                        element_kind((*weight)->tensor));
    }
    if (scales->tensor.dtype != biases->tensor.dtype) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: scales are {} and biases {}",
                        describe(scales->tensor),
                        element_kind(scales->tensor),
                        element_kind(biases->tensor));
    }
    SLUICE_TRY(mx::array weight_array, materialize_dense((*weight)->tensor));
    SLUICE_TRY(mx::array scales_array, materialize_dense(scales->tensor));
    SLUICE_TRY(mx::array biases_array, materialize_dense(biases->tensor));
    for (Entry* entry : {*weight, scales, biases}) consume(*entry);
    return AffineMatrix{std::move(weight_array),
                        std::move(scales_array),
                        std::move(biases_array),
                        format.bits,
                        format.group_size};
  }

  // The format of an affine module whose .weight this is, as far as the file tells it.
  std::optional<AffineFormat> affine_format(const std::string& weight_name) const {
    const std::string path = stem(weight_name);
    if (weight_name != path + ".weight" || !entries.contains(path + ".scales")) return std::nullopt;
    return quantization.format_of(path);
  }

  // Whether this is the .scales or .biases of an affine module that list() shows as one entry.
  bool is_part_of_affine(const std::string& name) const {
    const std::string path = stem(name);
    return (name == path + ".scales" || name == path + ".biases") &&
           affine_format(path + ".weight").has_value() && entries.contains(path + ".weight");
  }
};

WeightMap::WeightMap(std::vector<StoredTensor> tensors,
                     QuantizationConfig quantization,
                     Progress progress)
    : state_(std::make_unique<State>()) {
  state_->quantization = std::move(quantization);
  state_->progress = std::move(progress);
  std::map<std::string, int> files;
  for (auto& tensor : tensors) {
    state_->total += tensor.bytes;
    if (tensor.file) ++files[tensor.file->path().string()];
    std::string name = tensor.name;
    const bool added = state_->entries.emplace(name, Entry{std::move(tensor)}).second;
    SLUICE_CHECK(added, "tensor {} is there twice", name);
  }
  if (!files.empty()) state_->files = files.begin()->first;
  if (files.size() > 1) state_->files += fmt::format(" and {} more files", files.size() - 1);
}

WeightMap::WeightMap() = default;
WeightMap::~WeightMap() = default;
WeightMap::WeightMap(WeightMap&&) noexcept = default;
WeightMap& WeightMap::operator=(WeightMap&&) noexcept = default;

bool WeightMap::contains(const std::string& name) const {
  return state_ && state_->entries.contains(name);
}

Result<mx::array> WeightMap::take(const std::string& name, const mx::Shape& expected_shape) {
  if (!state_) return State{}.missing(name);
  const std::vector<int64_t> shape(expected_shape.begin(), expected_shape.end());
  SLUICE_TRY(Entry * entry, state_->claim_float(name, shape));
  SLUICE_TRY(mx::array array, materialize_dense(entry->tensor));
  state_->consume(*entry);
  return array;
}

Result<Matrix> WeightMap::take_matrix(const std::string& module_path,
                                      int out_features,
                                      int in_features) {
  const std::string name = module_path + ".weight";
  if (!contains(name)) return (state_ ? state_->missing(name) : State{}.missing(name));
  if (contains(module_path + ".scales")) {
    SLUICE_TRY(AffineMatrix matrix, state_->take_affine(module_path, out_features, in_features));
    return Matrix(std::move(matrix));
  }
  if (state_->quantization.demands(module_path)) {
    return make_error(ErrorCode::kCorruptFile,
                      "{}: config.json quantizes {}, but {}.scales is missing",
                      state_->files,
                      module_path,
                      module_path);
  }
  if (!is_block_quantized(state_->find(name)->tensor.ggml_type)) {
    SLUICE_TRY(mx::array dense, take(name, {out_features, in_features}));
    return Matrix(std::move(dense));
  }
  SLUICE_TRY(Entry * entry, state_->claim(name, {out_features, in_features}));
  SLUICE_TRY(AffineMatrix matrix, materialize_affine(entry->tensor));
  state_->consume(*entry);
  return Matrix(std::move(matrix));
}

bool WeightMap::ignore(const std::string& name) {
  Entry* entry = state_ ? state_->find(name) : nullptr;
  if (!entry) return false;
  if (!entry->consumed) state_->consume(*entry);
  return true;
}

int WeightMap::ignore_if(const std::function<bool(const std::string& name)>& predicate) {
  if (!state_) return 0;
  int count = 0;
  for (auto& [name, entry] : state_->entries) {
    if (entry.consumed || !predicate(name)) continue;
    state_->consume(entry);
    ++count;
  }
  return count;
}

Status WeightMap::finish() const {
  if (!state_) return {};
  std::vector<std::string> left;
  size_t count = 0;
  for (const auto& [name, entry] : state_->entries) {
    if (entry.consumed) continue;
    if (++count <= kMaxListed) left.push_back(name);
  }
  if (count == 0) return {};
  return make_error(ErrorCode::kUnsupported,
                    "{}: {} tensors belong to no part of the model that sluice knows: {}{}",
                    state_->files,
                    count,
                    fmt::join(left, ", "),
                    count > left.size() ? ", ..." : "");
}

std::vector<TensorInfo> WeightMap::list() const {
  std::vector<TensorInfo> result;
  if (!state_) return result;
  for (const auto& [name, entry] : state_->entries) {
    if (state_->is_part_of_affine(name)) continue;
    const StoredTensor& tensor = entry.tensor;
    TensorInfo info{name, element_kind(tensor), tensor.shape, tensor.bytes, {}};
    if (tensor.file) info.file = tensor.file->path();
    if (const auto format = state_->affine_format(name)) {
      info.kind = fmt::format("affine {}-bit group {}", format->bits, format->group_size);
      if (!info.shape.empty()) info.shape.back() = info.shape.back() * 32 / format->bits;
      for (const char* part : {".scales", ".biases"}) {
        const auto found = state_->entries.find(stem(name) + part);
        if (found != state_->entries.end()) info.bytes += found->second.tensor.bytes;
      }
    }
    result.push_back(std::move(info));
  }
  return result;
}

uint64_t WeightMap::total_bytes() const {
  return state_ ? state_->total : 0;
}

}  // namespace sluice::loader
