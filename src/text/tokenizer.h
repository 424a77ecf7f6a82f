// A Hugging Face tokenizer (tokenizer.json) and its incremental decoder, over the Rust crate
// `tokenizers`. Ids are equal to the Python package's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sluice_tok;
struct sluice_stream;

namespace sluice::text {

struct EncodeOptions {
  // Add what the tokenizer's post-processor adds, usually BOS. Off for rendered chat templates,
  // which spell it themselves.
  bool add_special = true;
  // Read "<|im_end|>" and the like as the token. Off for text that must stay text. Added tokens
  // that are not special (say, "<think>" in some vocabularies) are read as tokens all the same.
  bool parse_special = true;
};

// A token that was added to the model's own vocabulary.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;  // a control token: left out by decode(skip_special)
};

// Immutable and cheap to copy (a shared handle); any number of threads may use one at once.
class Tokenizer {
 public:
  // `tokenizer_json` is the file's text, read during the call. kCorruptFile for text that is no
  // tokenizer or whose decoder sluice cannot run incrementally.
  static Result<Tokenizer> from_json(std::string_view tokenizer_json);

  // kInvalidArgument for invalid UTF-8 (with the byte offset) and for more than 500,000 white-space
  // characters in a row, which the regex engine would silently split wrongly.
  Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options = {}) const;

  // Valid UTF-8; bytes that are none become U+FFFD; ids that no token has (logits are often wider
  // than the vocabulary) give no text. kInvalidArgument for negative ids.
  Result<std::string> decode(std::span<const int32_t> ids, bool skip_special) const;

  std::optional<int32_t> token_to_id(std::string_view token) const;
  // The token as the vocabulary spells it ("Ġthe", "<0x0A>").
  std::optional<std::string> id_to_token(int32_t id) const;
  // The bytes that the token adds within a text (" the", "\n"); in general not valid UTF-8.
  std::optional<std::string> token_bytes(int32_t id) const;

  // The highest id + 1, added tokens included. The model's logits may be wider.
  int32_t vocab_size() const;
  // By id. special_tokens() are those of them that are special.
  const std::vector<AddedToken>& added_tokens() const;
  std::vector<AddedToken> special_tokens() const;

  // The bridge's handle, for the grammar factory; valid while a copy of this tokenizer lives.
  const sluice_tok* handle() const;

 private:
  struct Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Turns ids into text one by one: whole characters only, amortized O(1) per token. All pieces and
// finish() joined equal decode() of the same ids. For one thread at a time; may outlive its
// Tokenizer.
class DetokenizerStream {
 public:
  // `prompt`: the ids before the stream (its last 64 are enough). They decide whether a leading
  // space is dropped; a character that they leave unfinished is finished by the stream.
  static Result<DetokenizerStream> create(const Tokenizer& tokenizer,
                                          bool skip_special,
                                          std::span<const int32_t> prompt = {});
  ~DetokenizerStream();
  DetokenizerStream(DetokenizerStream&&) noexcept;
  DetokenizerStream& operator=(DetokenizerStream&&) noexcept;

  // The text that `id` completes, often empty. kInvalidArgument for a negative id.
  Result<std::string> step(int32_t id);
  // U+FFFD for an unfinished character, else empty. The stream may then go on as at its start.
  Result<std::string> finish();

 private:
  struct Impl;
  explicit DetokenizerStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::text
