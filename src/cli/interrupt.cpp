#include "cli/interrupt.h"

namespace sluice::cli {
namespace {

std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch it");

void on_interrupt(int signal) {
  // The flag is still up: nobody looked at it. Give up politeness.
  if (interrupt_flag.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_flag = false;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_, nullptr);
}

const std::atomic<bool>* InterruptGuard::flag() const {
  return &interrupt_flag;
}

}  // namespace sluice::cli
