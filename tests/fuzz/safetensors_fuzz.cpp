// The safetensors container.
#include "fuzz_target.h"
#include "loader/safetensors.h"
#include "loader/test_files.h"

namespace loader = sluice::loader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensors = loader::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz");
  if (!tensors.ok()) return 0;
  volatile unsigned sum = 0;
  for (const auto& tensor : *tensors) {
    for (const auto byte : tensor.data) sum = sum + std::to_integer<unsigned>(byte);
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  loader::testing::SafetensorsBuilder plain, quantized;
  plain.f32("model.norm.weight", {4}).f32("b", {2, 3}).f32("empty", {0, 7});
  plain.header()["__metadata__"] = {{"format", "mlx"}};
  quantized.add("a.weight", "U32", {2, 8}, std::string(64, 1))
      .add("a.scales", "BF16", {2, 1}, std::string(4, 1))
      .add("a.biases", "BF16", {2, 1}, std::string(4, 1));
  return {plain.build(), quantized.build(), plain.build(3)};
}
