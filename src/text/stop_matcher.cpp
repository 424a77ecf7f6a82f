#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace sluice::text {

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  std::vector<Pattern> patterns;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (stops[i].empty()) {
      return make_error(ErrorCode::kInvalidArgument, "stop string {} is empty", i);
    }
    Pattern pattern;
    pattern.text = std::move(stops[i]);
    pattern.fallback.assign(pattern.text.size(), 0);
    for (size_t at = 1, border = 0; at < pattern.text.size(); ++at) {
      while (border > 0 && pattern.text[at] != pattern.text[border]) {
        border = pattern.fallback[border - 1];
      }
      if (pattern.text[at] == pattern.text[border]) ++border;
      pattern.fallback[at] = border;
    }
    patterns.push_back(std::move(pattern));
  }
  return StopMatcher(std::move(patterns));
}

void StopMatcher::advance(Pattern& pattern, char byte) {
  while (pattern.length > 0 && pattern.text[pattern.length] != byte) {
    pattern.length = pattern.fallback[pattern.length - 1];
  }
  if (pattern.text[pattern.length] == byte) ++pattern.length;
}

std::string StopMatcher::push(std::string_view piece) {
  if (stopped()) return {};
  for (const char byte : piece) {
    held_.push_back(byte);
    size_t longest = 0;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      Pattern& pattern = patterns_[i];
      advance(pattern, byte);
      if (pattern.length == pattern.text.size() && pattern.length > longest) {
        longest = pattern.length;
        matched_ = i;
      }
    }
    if (stopped()) {
      held_.resize(held_.size() - longest);
      return std::exchange(held_, {});
    }
  }
  // Only the longest beginning of a stop string at the end can still become one.
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.length);
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopMatcher::finish() {
  for (Pattern& pattern : patterns_) pattern.length = 0;
  return std::exchange(held_, {});
}

}  // namespace sluice::text
