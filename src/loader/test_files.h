// Builds small checkpoint files for tests and fuzzers, byte by byte, sharing nothing with the
// readers.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::loader::testing {

// A folder that is gone when the test ends.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
std::string raw_all(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}
inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// safetensors: tensors lie in the order in which they are added.
class SafetensorsBuilder {
 public:
  SafetensorsBuilder& add(const std::string& name,
                          const std::string& dtype,
                          const std::vector<int64_t>& shape,
                          const std::string& data) {
    header_[name] = {{"dtype", dtype},
                     {"shape", shape},
                     {"data_offsets", {data_.size(), data_.size() + data.size()}}};
    data_ += data;
    return *this;
  }
  SafetensorsBuilder& f32(const std::string& name,
                          const std::vector<int64_t>& shape,
                          float value = 1) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return add(name, "F32", shape, raw_all(std::vector<float>(count, value)));
  }
  nlohmann::json& header() { return header_; }  // for tests that break it
  // padding: spaces after the header; 8-byte alignment if negative.
  std::string build(int padding = -1) const {
    std::string text = header_.dump();
    if (padding < 0) padding = static_cast<int>((8 - text.size() % 8) % 8);
    text.append(padding, ' ');
    return raw<uint64_t>(text.size()) + text + data_;
  }

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

// GGUF v3. Keys and tensors in the order in which they are added.
class GgufBuilder {
 public:
  static std::string text(const std::string& value) { return raw<uint64_t>(value.size()) + value; }

  GgufBuilder& pair(const std::string& key, uint32_t type, const std::string& value) {
    pairs_ += text(key) + raw(type) + value;
    ++pair_count_;
    return *this;
  }
  GgufBuilder& u32(const std::string& key, uint32_t value) { return pair(key, 4, raw(value)); }
  GgufBuilder& f32(const std::string& key, float value) { return pair(key, 6, raw(value)); }
  GgufBuilder& boolean(const std::string& key, bool value) {
    return pair(key, 7, raw<uint8_t>(value));
  }
  GgufBuilder& string(const std::string& key, const std::string& value) {
    return pair(key, 8, text(value));
  }
  GgufBuilder& strings(const std::string& key, const std::vector<std::string>& values) {
    std::string body = raw<uint32_t>(8) + raw<uint64_t>(values.size());
    for (const auto& value : values) body += text(value);
    return pair(key, 9, body);
  }
  GgufBuilder& i32s(const std::string& key, const std::vector<int32_t>& values) {
    return pair(key, 9, raw<uint32_t>(5) + raw<uint64_t>(values.size()) + raw_all(values));
  }
  GgufBuilder& f32s(const std::string& key, const std::vector<float>& values) {
    return pair(key, 9, raw<uint32_t>(6) + raw<uint64_t>(values.size()) + raw_all(values));
  }

  // shape: GGUF's order, innermost first. offset < 0: the next aligned place.
  GgufBuilder& tensor(const std::string& name,
                      const std::vector<uint64_t>& shape,
                      uint32_t type,
                      const std::string& data,
                      int64_t offset = -1) {
    data_.append((32 - data_.size() % 32) % 32, '\0');
    infos_ += text(name) + raw<uint32_t>(shape.size()) + raw_all(shape) + raw(type);
    infos_ += raw<uint64_t>(offset < 0 ? data_.size() : offset);
    data_ += data;
    ++tensor_count_;
    return *this;
  }
  GgufBuilder& f32_tensor(const std::string& name,
                          const std::vector<uint64_t>& shape,
                          float value = 1) {
    uint64_t count = 1;
    for (const uint64_t size : shape) count *= size;
    return tensor(name, shape, 0, raw_all(std::vector<float>(count, value)));
  }

  std::string build(uint32_t version = 3) const {
    std::string file =
        "GGUF" + raw(version) + raw(tensor_count_) + raw(pair_count_) + pairs_ + infos_;
    file.append((32 - file.size() % 32) % 32, '\0');
    return file + data_;
  }

 private:
  std::string pairs_, infos_, data_;
  uint64_t pair_count_ = 0, tensor_count_ = 0;
};

// One block of values 0, 1, 2, ... in GGML's nibble order, after the given head (scales).
inline std::string nibble_block(const std::string& head, const std::vector<uint8_t>& values) {
  std::string block = head;
  for (int i = 0; i < 16; ++i) block += static_cast<char>(values[i] | values[i + 16] << 4);
  return block;
}

// The metadata of a one-layer model: hidden size 64, 2 query heads and 1 kv head of 32, 5 tokens.
inline GgufBuilder tiny_llama_metadata(const std::string& architecture = "llama") {
  GgufBuilder file;
  file.string("general.architecture", architecture)
      .u32(architecture + ".block_count", 1)
      .u32(architecture + ".context_length", 128)
      .u32(architecture + ".embedding_length", 64)
      .u32(architecture + ".feed_forward_length", 96)
      .u32(architecture + ".attention.head_count", 2)
      .u32(architecture + ".attention.head_count_kv", 1)
      .f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f)
      .f32(architecture + ".rope.freq_base", 10000.0f)
      .string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "smollm")
      .strings("tokenizer.ggml.tokens", {"<|endoftext|>", "a", "b", "ab", "<|im_end|>"})
      .i32s("tokenizer.ggml.token_type", {3, 1, 1, 1, 3})
      .strings("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.bos_token_id", 0)
      .u32("tokenizer.ggml.eos_token_id", 0);
  return file;
}

inline GgufBuilder tiny_llama(const std::string& architecture = "llama") {
  GgufBuilder file = tiny_llama_metadata(architecture);
  file.f32_tensor("token_embd.weight", {64, 5})
      .f32_tensor("output_norm.weight", {64})
      .f32_tensor("blk.0.attn_norm.weight", {64})
      .f32_tensor("blk.0.attn_q.weight", {64, 64})
      .f32_tensor("blk.0.attn_k.weight", {64, 32})
      .f32_tensor("blk.0.attn_v.weight", {64, 32})
      .f32_tensor("blk.0.attn_output.weight", {64, 64})
      .f32_tensor("blk.0.ffn_norm.weight", {64})
      .f32_tensor("blk.0.ffn_gate.weight", {64, 96})
      .f32_tensor("blk.0.ffn_up.weight", {64, 96})
      .f32_tensor("blk.0.ffn_down.weight", {96, 64});
  return file;
}

}  // namespace sluice::loader::testing
