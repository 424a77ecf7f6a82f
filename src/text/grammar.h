// Grammar-constrained generation over the Rust crate llguidance: JSON schema, regex or Lark.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token_constraint.h"
#include "text/tokenizer.h"

struct sluice_matcher;

namespace sluice::text {

// Against grammars that are too costly; 0 means llguidance's default, named in each comment.
struct GrammarLimits {
  uint64_t max_grammar_size = 0;    // symbols in productions; 500,000
  uint64_t max_items_in_row = 0;    // branching; 2,000
  uint64_t max_lexer_states = 0;    // 1-2 kB each; 250,000
  uint64_t initial_lexer_fuel = 0;  // at compile time; 1,000,000
  uint64_t step_lexer_fuel = 0;     // per mask; 200,000
  uint64_t step_max_items = 0;      // per mask; 50,000
};

// One generation's place in one grammar. Movable; for one thread at a time. An error of
// kResourceExhausted (a limit) ends the matcher: all later calls give it again.
class GrammarMatcher final : public TokenConstraint {
 public:
  ~GrammarMatcher() override;
  GrammarMatcher(GrammarMatcher&&) noexcept;
  GrammarMatcher& operator=(GrammarMatcher&&) noexcept;

  Status fill_mask(std::span<uint32_t> words) override;
  Status accept(int32_t id) override;
  Status rollback(size_t n) override;
  Result<bool> is_done() override;
  Result<std::vector<int32_t>> forced() override;

  // The text so far is a complete match, so that an end token is allowed.
  Result<bool> is_accepting();
  // Accepts `ids` until one is not allowed; how many were taken.
  Result<size_t> try_accept(std::span<const int32_t> ids);
  // How many of `ids` could be accepted; changes nothing.
  Result<size_t> count_allowed(std::span<const int32_t> ids);
  // Back to the start of the grammar.
  Status reset();
  // A copy with the same history that shares nothing: fit for another thread.
  Result<GrammarMatcher> deep_copy() const;

 private:
  friend class GrammarFactory;
  struct Impl;
  explicit GrammarMatcher(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A tokenizer prepared for masks. Immutable and cheap to copy (a shared handle); any number of
// threads may use one at once.
class GrammarFactory {
 public:
  // Once per model: takes 0.1 to 1 s. `n_vocab` is the width of the logits; `eos_ids` must not be
  // empty. kInvalidArgument for ids outside of n_vocab.
  static Result<GrammarFactory> create(const Tokenizer& tokenizer,
                                       int32_t n_vocab,
                                       std::span<const int32_t> eos_ids,
                                       const GrammarLimits& limits = {});

  // kInvalidArgument for a text that is no schema (JSON text), regex (of Rust's crate regex; the
  // whole output must match) or grammar (llguidance's variant of Lark), for a feature that
  // llguidance does not know (it is named) and for one over the limits.
  Result<GrammarMatcher> from_json_schema(std::string_view schema) const;
  Result<GrammarMatcher> from_regex(std::string_view regex) const;
  Result<GrammarMatcher> from_lark(std::string_view grammar) const;

  int32_t n_vocab() const;

 private:
  struct Impl;
  explicit GrammarFactory(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  Result<GrammarMatcher> compile(uint32_t kind, std::string_view source) const;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace sluice::text
