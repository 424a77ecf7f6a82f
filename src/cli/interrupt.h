// Ctrl-C while an answer is made: it stops the answer and not the program.
#pragma once

#include <atomic>
#include <csignal>

namespace sluice::cli {

// While one lives, SIGINT sets a flag; a second SIGINT before anybody reacted ends the program as
// usual. One at a time, main thread.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // For Engine::generate.
  const std::atomic<bool>* flag() const;
  bool interrupted() const { return flag()->load(); }

 private:
  struct sigaction before_;
};

}  // namespace sluice::cli
