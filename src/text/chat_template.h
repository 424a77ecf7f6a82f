// A model's chat template in the Jinja dialect of Hugging Face transformers, over the Rust crate
// minijinja. Renders are equal to apply_chat_template(tokenize=False).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::text {

// JSON texts, read during the call.
struct ChatRenderInput {
  // An array of objects ({"role", "content", ...}). Keys with a null value are dropped, as
  // transformers does; reasoning_content, thinking and reasoning are names of one thing.
  std::string_view messages_json;
  // An array of JSON schemas of functions, or "null", or empty.
  std::string_view tools_json = {};
  // An object of further variables (enable_thinking, ...), or empty. May override bos_token and
  // eos_token but not messages, tools and add_generation_prompt.
  std::string_view kwargs_json = {};
  bool add_generation_prompt = true;
};

// Immutable and cheap to copy (a shared handle); any number of threads may render with one at once.
class ChatTemplate {
 public:
  // `bos` and `eos` are the tokens' texts; empty leaves the variable undefined. kCorruptFile for a
  // template that does not parse, with the line.
  static Result<ChatTemplate> from_source(std::string_view source,
                                          std::string_view bos,
                                          std::string_view eos);

  // kInvalidArgument for JSON that is not as above and when the template itself refuses the
  // messages (raise_exception: the error is its message); kUnsupported when the template fails or
  // runs away.
  Result<std::string> render(const ChatRenderInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace sluice::text
