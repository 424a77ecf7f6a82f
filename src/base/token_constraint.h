// What a sampler needs of a grammar: which tokens may come next. text/ implements it over
// llguidance; sampling/ applies the mask; speculation rolls back. Neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace sluice {

// The place of one generation in its constraint. For one thread at a time.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Sets bit i % 32 of words[i / 32] for every token i that may come next, and clears all others.
  // At least ceil(n_vocab / 32) words, n_vocab being the width of the logits; words beyond are
  // zeroed. Where the constraint forces a text, only the tokenizer's own spelling of it may be set.
  // Once done only end tokens are set.
  virtual Status fill_mask(std::span<uint32_t> words) = 0;

  // Advances by one token, of the mask or another spelling of forced text. kInvalidArgument for any
  // other token, and nothing changes.
  virtual Status accept(int32_t id) = 0;

  // Takes back the last n accepted tokens; kInvalidArgument if there are fewer.
  virtual Status rollback(size_t n) = 0;

  // True once nothing but an end token can follow.
  virtual Result<bool> is_done() = 0;

  // The tokens that must come next, in the tokenizer's own spelling; often none. Not accepted yet:
  // they are drafts, which the masked sampler confirms.
  virtual Result<std::vector<int32_t>> forced() = 0;
};

}  // namespace sluice
