// Stop strings over decoded text: found wherever token boundaries fall, never leaked in part.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::text {

// Feeds on text piece by piece and gives back what is certain not to belong to a stop string. The
// result depends on the text alone, not on how it was cut: the stop string that ends first wins, of
// those that end together the longest. Works on bytes; pieces of whole UTF-8 characters in give
// whole characters out. Copyable; for one thread at a time.
class StopMatcher {
 public:
  // No strings: everything passes at once. kInvalidArgument for an empty string, which would stop
  // everywhere.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  // The text that may be shown now. Empty once stopped.
  std::string push(std::string_view piece);
  // What was held back, when the text ends without a stop. Empty once stopped.
  std::string finish();

  bool stopped() const { return matched_.has_value(); }
  // Index in create()'s list of the string that stopped the text.
  std::optional<size_t> matched() const { return matched_; }

 private:
  struct Pattern {
    std::string text;
    std::vector<size_t> fallback;  // Knuth-Morris-Pratt: longest border of each prefix
    size_t length = 0;             // bytes of `text` that the text so far ends with
  };
  explicit StopMatcher(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
  static void advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string held_;
  std::optional<size_t> matched_;
};

}  // namespace sluice::text
