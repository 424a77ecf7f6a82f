#include "server/request_id.h"

#include <algorithm>
#include <cstddef>
#include <random>

namespace sluice::server {

std::string random_id(std::string_view prefix) {
  constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuvwxyz";
  constexpr int kLength = 24;
  thread_local std::mt19937_64 random{[] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }()};
  std::uniform_int_distribution<size_t> digit(0, kDigits.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < kLength; ++i) id += kDigits[digit(random)];
  return id;
}

bool is_fit_request_id(std::string_view id) {
  constexpr size_t kLongest = 128;
  static constexpr std::string_view kMarks = "._:/+=@-";
  return !id.empty() && id.size() <= kLongest && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

}  // namespace sluice::server
