#include "loader/spm_merges.h"

#include <algorithm>

namespace sluice::loader {

namespace {

constexpr int64_t kNormal = 1;
// Real pieces have up to a few dozen bytes. The work below grows with the square of the length, so
// a hostile file must not choose it.
constexpr size_t kMaxPiece = 1024;

struct Candidate {
  float score = 0;
  size_t left = 0;  // bytes
  Merge merge;
};

}  // namespace

std::vector<Merge> merges_by_score(const std::vector<std::string_view>& tokens,
                                   const TokenIds& ids,
                                   const std::vector<float>& scores,
                                   const std::vector<int64_t>& types) {
  std::vector<Candidate> candidates;
  const auto mergeable = [&](std::string_view piece) {
    const auto found = ids.find(piece);
    return found != ids.end() && types[found->second] == kNormal;
  };
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view piece = tokens[id];
    if (types[id] != kNormal || piece.size() > kMaxPiece) continue;
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((static_cast<unsigned char>(piece[cut]) & 0xc0) == 0x80) continue;  // inside a character
      const Merge merge{piece.substr(0, cut), piece.substr(cut)};
      if (mergeable(merge.first) && mergeable(merge.second)) {
        candidates.push_back({scores[id], cut, merge});
      }
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    return a.score != b.score ? a.score > b.score : a.left > b.left;
  });
  std::vector<Merge> merges;
  merges.reserve(candidates.size());
  for (const auto& candidate : candidates) merges.push_back(candidate.merge);
  return merges;
}

}  // namespace sluice::loader
