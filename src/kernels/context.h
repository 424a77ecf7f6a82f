// Which implementation of every op runs: chosen once, when a model is loaded, from the device and
// the forced choice, never from row counts or lengths (design rule 1).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/activation_plan.h"
#include "tensor/mx.h"

namespace sluice::kernels {

// kReference: composed MLX ops in mlx-lm's order, each row alone. kCpu: own kernels, same bits for
// a row whatever else is in the pass.
enum class Backend { kReference, kCpu };

// The instruction set variants of the own CPU kernels. They are written to a virtual width of 16
// float lanes with explicit fused multiply-adds, so all give the same bits. kAvxVnni and
// kAvx512Vnni are kAvx2 and kAvx512 with integer dot products, for the ops that have use for them.
enum class Isa { kGeneric, kAvx2, kAvxVnni, kAvx512, kAvx512Vnni };

enum class Op {
  kLinear,
  kEmbedding,
  kRmsNorm,
  kRope,
  kSwiglu,
  kSigmoidGate,
  kAttention,
  kCausalConv,
  kDeltaGates,
  kGatedDelta,
  kGatedRmsNorm,
};
inline constexpr int kNumOps = 11;

const char* backend_name(Backend backend);  // "reference", "cpu"
const char* isa_name(Isa isa);              // "generic", "avx2", "avxvnni", ...
const char* op_name(Op op);                 // "linear", ...

// The names above, parsed; unknown names are an error that lists the known ones.
Result<Backend> parse_backend(const std::string& name);
Result<Isa> parse_isa(const std::string& name);

// The best variant that this processor and operating system support, and all of them.
Isa best_isa();
std::vector<Isa> supported_isas();

struct ContextOptions {
  Backend backend = Backend::kCpu;
  std::optional<Isa> isa;      // forced variant; an unsupported one is an error
  int threads = 0;             // 0: ThreadPool::default_size()
  ActivationPlan activations;  // of the own linear kernel; the reference has none
  bool check = false;  // run the reference beside every own kernel and record the largest error
};

// The largest difference that check mode saw for one op.
struct CheckRecord {
  int64_t calls = 0;
  double max_abs_error = 0;
  double max_reference = 0;  // largest absolute value of the reference, to judge the error by
};

// Immutable after creation but for its counters; shared by every op of one engine, and must outlive
// every array made with it. Ops may be called on the engine thread only; the counters may be read
// on any thread.
class Context {
 public:
  static Result<std::unique_ptr<Context>> create(const ContextOptions& options);

  Backend backend() const { return backend_; }
  bool reference() const { return backend_ == Backend::kReference; }
  Isa isa() const { return isa_; }
  const ActivationPlan& activations() const { return activations_; }
  bool check() const { return check_; }
  ThreadPool& pool() const { return *pool_; }

  // How often an op's own kernel (not its reference) was run: lets a test prove what ran.
  int64_t kernel_runs(Op op) const { return runs_[static_cast<int>(op)].load(); }
  void count_run(Op op) const { runs_[static_cast<int>(op)].fetch_add(1); }

  // Check mode: evaluates both, records the largest error of op, and returns result.
  mx::array compare(Op op, const mx::array& result, const mx::array& reference) const;
  std::map<Op, CheckRecord> check_records() const;

 private:
  Context() = default;

  Backend backend_ = Backend::kCpu;
  Isa isa_ = Isa::kGeneric;
  ActivationPlan activations_;
  bool check_ = false;
  std::unique_ptr<ThreadPool> pool_;
  mutable std::atomic<int64_t> runs_[kNumOps] = {};
  mutable std::mutex records_mutex_;
  mutable std::map<Op, CheckRecord> records_;
};

// The one place where an op chooses: own kernel, reference, or both in check mode.
template <class Own, class Reference>
mx::array dispatch(const Context& context, Op op, Own&& own, Reference&& reference) {
  if (context.reference()) return reference();
  mx::array result = own();
  return context.check() ? context.compare(op, result, reference()) : result;
}

}  // namespace sluice::kernels
