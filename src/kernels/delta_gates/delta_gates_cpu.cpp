#include "kernels/cpu_primitive.h"
#include "kernels/delta_gates/delta_gates.h"
#include "kernels/delta_gates/delta_gates_kernels.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(DeltaGatesKernels, delta_gates_kernels)

namespace {

// Values worth handing to another thread: some 4 us of work.
constexpr int64_t kGrainValues = 2048;

struct Job {
  StridedRows a, b;
  const float* a_log;
  const float* dt_bias;
  float* out;  // g [N, Hv], then beta [N, Hv]
  const DeltaGatesKernels* kernels;
  ThreadPool* pool;

  void run() const {
    const int64_t width = a.width, values = a.count * width;
    pool->parallel_for(
        a.count, std::max<int64_t>(1, kGrainValues / width), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            float *g = out + r * width, *beta = g + values;
            const float *from_a = a.row(r), *from_b = b.row(r);
            // The outputs serve as the dense copies of strided inputs.
            if (a.column_stride != 1) {
              for (int i = 0; i < width; ++i) g[i] = from_a[i * a.column_stride];
              from_a = g;
            }
            if (b.column_stride != 1) {
              for (int i = 0; i < width; ++i) beta[i] = from_b[i * b.column_stride];
              from_b = beta;
            }
            kernels->apply(from_a, from_b, a_log, dt_bias, a.width, g, beta);
          }
        });
  }
};

class DeltaGatesPrimitive : public CpuPrimitive {
 public:
  explicit DeltaGatesPrimitive(const Context& context) : CpuPrimitive(context, Op::kDeltaGates) {}

  using CpuPrimitive::eval_cpu;
  // Inputs: a, b, a_log, dt_bias; the last two are evaluated weights, dense.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    queue([job = Job{StridedRows(inputs[0]),
                     StridedRows(inputs[1]),
                     inputs[2].data<float>(),
                     inputs[3].data<float>(),
                     out.data<float>(),
                     &delta_gates_kernels(context_.isa()),
                     &context_.pool()}] { job.run(); });
  }
};

}  // namespace

DeltaGates delta_gates_cpu(const Context& context,
                           const mx::array& a,
                           const mx::array& b,
                           const mx::array& a_log,
                           const mx::array& dt_bias) {
  tensor::require_dtype("delta_gates", "a", a, {mx::float32});
  const int tokens = a.shape(0), heads = a.shape(1);
  if (a.size() == 0) return {mx::zeros(a.shape()), mx::zeros(a.shape())};
  mx::array both({2, tokens, heads},
                 mx::float32,
                 std::make_shared<DeltaGatesPrimitive>(context),
                 {a, b, mx::contiguous(a_log), mx::contiguous(dt_bias)});
  auto part = [&](int i) {
    return mx::squeeze(mx::slice(both, {i, 0, 0}, {i + 1, tokens, heads}), 0);
  };
  return {part(0), part(1)};
}

}  // namespace sluice::kernels
