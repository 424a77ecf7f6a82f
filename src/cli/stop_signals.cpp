#include "cli/stop_signals.h"

#include <csignal>
#include <utility>

namespace sluice::cli {
namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const auto set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { run(); });
}

StopSignals::~StopSignals() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void StopSignals::on_signal(std::function<void(int)> handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  count_ = 0;
}

void StopSignals::run() {
  const auto set = stop_set();
  for (;;) {
    int signal = 0;
    sigwait(&set, &signal);
    if (ending_) return;
    std::lock_guard lock(mutex_);
    if (handler_) {
      handler_(++count_);
      continue;
    }
    std::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    std::raise(signal);
  }
}

}  // namespace sluice::cli
