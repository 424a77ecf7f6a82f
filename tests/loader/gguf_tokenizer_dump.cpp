// Prints the tokenizer.json that the loader makes of a GGUF file (a vocabulary without tensors will
// do): the parity tests hold it against Hugging Face's tokenizers.
#include <cstdio>

#include "base/mapped_file.h"
#include "loader/gguf_file.h"
#include "loader/gguf_tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gguf_tokenizer_dump FILE.gguf > tokenizer.json\n");
    return 2;
  }
  const auto convert = [&]() -> sluice::Result<sluice::loader::GgufTokenizer> {
    SLUICE_TRY(const auto mapped, sluice::MappedFile::open(argv[1]));
    SLUICE_TRY(const auto file, sluice::loader::GgufFile::parse(mapped->bytes(), argv[1]));
    return sluice::loader::tokenizer_from_gguf(file.metadata);
  };
  const auto tokenizer = convert();
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  const auto& text = tokenizer->tokenizer_json;
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
