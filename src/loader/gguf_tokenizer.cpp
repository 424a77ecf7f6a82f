#include "loader/gguf_tokenizer.h"

namespace sluice::loader {

Result<GgufTokenizer> tokenizer_from_gguf(const GgufMetadata& metadata) {
  return make_error(ErrorCode::kUnsupported, "{}: not yet", metadata.file_name());
}

}  // namespace sluice::loader
