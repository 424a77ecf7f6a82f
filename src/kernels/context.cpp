#include "kernels/context.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

constexpr std::pair<Backend, const char*> kBackends[] = {{Backend::kReference, "reference"},
                                                         {Backend::kCpu, "cpu"}};
constexpr std::pair<Isa, const char*> kIsas[] = {{Isa::kGeneric, "generic"},
                                                 {Isa::kAvx2, "avx2"},
                                                 {Isa::kAvxVnni, "avxvnni"},
                                                 {Isa::kAvx512, "avx512"},
                                                 {Isa::kAvx512Vnni, "avx512vnni"}};
constexpr std::pair<Op, const char*> kOps[] = {{Op::kLinear, "linear"},
                                               {Op::kEmbedding, "embedding"},
                                               {Op::kRmsNorm, "rms_norm"},
                                               {Op::kRope, "rope"},
                                               {Op::kSwiglu, "swiglu"},
                                               {Op::kSigmoidGate, "sigmoid_gate"},
                                               {Op::kAttention, "attention"},
                                               {Op::kCausalConv, "causal_conv"},
                                               {Op::kDeltaGates, "delta_gates"},
                                               {Op::kGatedDelta, "gated_delta"},
                                               {Op::kGatedRmsNorm, "gated_rms_norm"}};
static_assert(std::size(kOps) == kNumOps);

template <class Enum, size_t kCount>
const char* name_in(const std::pair<Enum, const char*> (&table)[kCount], Enum value) {
  for (const auto& [entry, name] : table) {
    if (entry == value) return name;
  }
  return "unknown";
}

template <class Enum, size_t kCount>
Result<Enum> parse_in(const std::pair<Enum, const char*> (&table)[kCount],
                      const char* what,
                      const std::string& text) {
  std::string known;
  for (const auto& [entry, name] : table) {
    if (text == name) return entry;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return make_error(
      ErrorCode::kInvalidArgument, "unknown {} '{}'; known are: {}", what, text, known);
}

// __builtin_cpu_supports also asks XGETBV whether the operating system saves the registers.
bool processor_supports(Isa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case Isa::kGeneric:
      return true;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
             __builtin_cpu_supports("f16c");
    case Isa::kAvxVnni:
      return processor_supports(Isa::kAvx2) && __builtin_cpu_supports("avxvnni");
    case Isa::kAvx512:
      return processor_supports(Isa::kAvx2) && __builtin_cpu_supports("avx512f") &&
             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512dq");
    case Isa::kAvx512Vnni:
      return processor_supports(Isa::kAvx512) && __builtin_cpu_supports("avx512vnni");
  }
  return false;
#else
  return isa == Isa::kGeneric;
#endif
}

std::string supported_names() {
  std::string names;
  for (Isa isa : supported_isas()) {
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  return names;
}

}  // namespace

const char* backend_name(Backend backend) {
  return name_in(kBackends, backend);
}
const char* isa_name(Isa isa) {
  return name_in(kIsas, isa);
}
const char* op_name(Op op) {
  return name_in(kOps, op);
}

Result<Backend> parse_backend(const std::string& name) {
  return parse_in(kBackends, "kernel backend", name);
}
Result<Isa> parse_isa(const std::string& name) {
  return parse_in(kIsas, "instruction set variant", name);
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const auto& [isa, name] : kIsas) {
    if (processor_supports(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa best_isa() {
  return supported_isas().back();
}

Result<std::unique_ptr<Context>> Context::create(const ContextOptions& options) {
  if (options.threads < 0) {
    return make_error(ErrorCode::kInvalidArgument,
                      "{} threads; give a number of at least 1, or 0 for the default",
                      options.threads);
  }
  if (options.isa && !processor_supports(*options.isa)) {
    return make_error(ErrorCode::kUnsupported,
                      "this processor or operating system does not support the instruction set "
                      "variant '{}'; supported are: {}",
                      isa_name(*options.isa),
                      supported_names());
  }
  std::unique_ptr<Context> context(new Context());
  context->backend_ = options.backend;
  context->isa_ = options.isa.value_or(best_isa());
  context->activations_ = options.activations;
  context->check_ = options.check;
  context->pool_ = std::make_unique<ThreadPool>(options.threads > 0 ? options.threads
                                                                    : ThreadPool::default_size());
  return context;
}

mx::array Context::compare(Op op, const mx::array& result, const mx::array& reference) const {
  SLUICE_CHECK(result.shape() == reference.shape(),
               "{}: own kernel gives {}, reference {}",
               op_name(op),
               tensor::shape_string(result.shape()),
               tensor::shape_string(reference.shape()));
  auto expected = mx::astype(reference, mx::float32);
  auto error = mx::max(mx::abs(mx::subtract(mx::astype(result, mx::float32), expected)));
  auto largest = mx::max(mx::abs(expected));
  if (result.size() > 0) mx::eval({error, largest});

  std::lock_guard lock(records_mutex_);
  CheckRecord& record = records_[op];
  ++record.calls;
  if (result.size() > 0) {
    // A NaN is the worst error: recorded, and kept.
    const double new_error = error.item<float>();
    if (std::isnan(new_error) || new_error > record.max_abs_error) record.max_abs_error = new_error;
    record.max_reference = std::max(record.max_reference, double{largest.item<float>()});
  }
  return result;
}

std::map<Op, CheckRecord> Context::check_records() const {
  std::lock_guard lock(records_mutex_);
  return records_;
}

}  // namespace sluice::kernels
