// What the engine sees of a model: one forward over packed tokens and rows, and commit (design
// section 2). Families live in folders of their own and are listed in registry.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/sequence_state.h"
#include "kernels/context.h"
#include "tensor/mx.h"

namespace sluice::models {

// Settled rows (decode, prefill) advance their state by the whole pass; tentative rows (verify) by
// what commit keeps.
enum class Settlement { kSettled, kTentative };

enum class LogitsWanted { kNone, kLast, kAll };

struct Row {
  cache::SequenceState* sequence = nullptr;  // borrowed for the pass; one row per sequence
  int first_token = 0;                       // index into Pass::tokens
  int count = 0;                             // tokens of this row, >= 1
  int first_position = 0;                    // must equal sequence->length()
  Settlement settlement = Settlement::kSettled;
  LogitsWanted logits = LogitsWanted::kLast;
  bool hidden = false;  // return the final-norm input of all its tokens (for a drafter)
};

// N tokens packed with no padding; rows cover them in order, without gaps.
struct Pass {
  std::vector<int32_t> tokens;
  std::vector<Row> rows;
};

// Lazy arrays, unless the reference had to evaluate row by row.
struct PassOutput {
  std::optional<mx::array> logits;  // [L, V]: for each row in order, its wanted tokens' logits
  std::optional<mx::array> hidden;  // [Nh, H]: for each row in order that asked, all its tokens
  std::vector<mx::array> effects;   // their evaluation writes the pass into the caches
};

// Evaluates everything in output and waits. Must follow every forward before the sequences' next
// pass, whether logits were wanted or not.
void evaluate(const PassOutput& output);

// Plain facts about a loaded model.
struct ModelTraits {
  std::string family;  // config's model_type
  int vocab_size = 0;  // width of the logits
  int hidden_size = 0;
  int num_layers = 0;
  int max_positions = 0;  // the context length that the config states
  mx::Dtype activation_dtype = mx::float32;
  size_t weight_bytes = 0;  // resident bytes of all weights in the form the backend uses
  size_t cache_bytes_per_token = 0;
  size_t cache_bytes_per_sequence = 0;  // whatever its length: gated-delta slots
  int cache_tokens = 0;                 // positions that the cache holds, over all sequences
};

// Lives on the engine thread; every member must be called there.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelTraits& traits() const = 0;

  // A fresh sequence with nothing in it. The model must outlive it.
  virtual std::unique_ptr<cache::SequenceState> new_sequence() = 0;

  // Builds the pass's graph. Checks the rows first (coverage, positions, token ids in range, one
  // row per sequence, no pass pending) and takes the pages that they need: an error changes
  // nothing. Evaluate the output (or commit's states) before the next pass of the same sequences.
  virtual Result<PassOutput> forward(const Pass& pass) = 0;

  // Follows every forward, with keep[i] of rows[i]'s tokens: settled rows keep all (less is an
  // error), tentative rows 0..count. An error changes nothing.
  virtual Status commit(std::span<const Row> rows, std::span<const int> keep) = 0;
};

}  // namespace sluice::models
