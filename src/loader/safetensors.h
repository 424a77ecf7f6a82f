// The safetensors container (github.com/huggingface/safetensors, README "Format"): 8 bytes of
// header length, a JSON header, the data. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::loader {

struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", "U32", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> data;
};

// The tensors in name order. bytes: the whole file; it must outlive the result, which points into
// it. name: for messages. Checked as the format's own library does: the header's length and JSON,
// known dtypes, shapes that fit the offsets, and offsets that cover the data exactly, without gap
// or overlap. Errors: kCorruptFile, naming the file and the tensor.
Result<std::vector<SafetensorsEntry>> parse_safetensors(std::span<const std::byte> bytes,
                                                        const std::string& name);

}  // namespace sluice::loader
