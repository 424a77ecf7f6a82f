// JSON files of a model folder: limits of the parser, and the quantization settings.
#include <cstdlib>
#include <string_view>

#include "fuzz_target.h"
#include "loader/json_text.h"
#include "loader/quantization_config.h"

namespace loader = sluice::loader;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = loader::parse_json(text, "fuzz");
  if (!json.ok() || !json->is_object()) return 0;
  const auto config = loader::QuantizationConfig::parse(*json);
  if (!config.ok()) return 0;
  const auto format = config->format_of("model.embed_tokens");
  // What is accepted must be affine: the kernels rely on it.
  if (format && (format->bits < 2 || format->bits > 8 || format->group_size % 32 != 0))
    std::abort();
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {R"({"model_type":"llama","quantization":{"group_size":64,"bits":4,"mode":"affine",)"
          R"("model.embed_tokens":{"group_size":32,"bits":8},"lm_head":false,"x":true}})",
          R"({"quantization_config":{"group_size":32,"bits":3,"quantize_activations":false},)"
          R"("a":[1,-2.5e3,null,"\u0041\n",{"b":[]}]})"};
}
