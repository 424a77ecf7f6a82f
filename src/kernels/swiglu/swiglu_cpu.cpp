#include <algorithm>

#include "kernels/cpu_primitive.h"
#include "kernels/simd/isa_tables.h"
#include "kernels/swiglu/swiglu.h"
#include "kernels/swiglu/swiglu_kernels.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(SwigluKernels, swiglu_kernels)

namespace {

// A piece of a row: what a strided input is gathered into fits the stack, and long rows divide
// among the threads. Values are independent, so it affects no bit of the result.
constexpr int kPiece = 1024;
// Pieces worth handing to another thread: some 2 us of work.
constexpr int64_t kGrain = 4;

struct SwigluJob {
  StridedRows gate, up;
  float* y;
  const SwigluKernels* kernels;
  ThreadPool* pool;

  void run_piece(int64_t row, int begin, int count) const {
    float gathered[2][kPiece];
    auto dense = [&](const StridedRows& rows, float* buffer) -> const float* {
      const float* source = rows.row(row) + begin * rows.column_stride;
      if (rows.column_stride == 1) return source;
      for (int i = 0; i < count; ++i) buffer[i] = source[i * rows.column_stride];
      return buffer;
    };
    const float* g = dense(gate, gathered[0]);
    const float* u = dense(up, gathered[1]);
    kernels->apply(g, u, count, y + row * gate.width + begin);
  }

  void run() const {
    const int width = gate.width;
    const int64_t pieces = (width + kPiece - 1) / kPiece;
    pool->parallel_for(gate.count * pieces, kGrain, [&](int64_t first, int64_t last) {
      for (int64_t item = first; item < last; ++item) {
        const int begin = static_cast<int>(item % pieces) * kPiece;
        run_piece(item / pieces, begin, std::min(kPiece, width - begin));
      }
    });
  }
};

class SwigluPrimitive : public CpuPrimitive {
 public:
  explicit SwigluPrimitive(const Context& context) : CpuPrimitive(context, Op::kSwiglu) {}

  using CpuPrimitive::eval_cpu;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &gate = inputs[0], &up = inputs[1];
    allocate_or_reuse(out, gate.is_donatable() ? gate : up);
    queue([job = SwigluJob{StridedRows(gate),
                           StridedRows(up),
                           out.data<float>(),
                           &swiglu_kernels(context_.isa()),
                           &context_.pool()}] { job.run(); });
  }
};

}  // namespace

mx::array swiglu_cpu(const Context& context, const mx::array& gate, const mx::array& up) {
  tensor::require_dtype("swiglu", "gate", gate, {mx::float32});
  tensor::require_dtype("swiglu", "up", up, {mx::float32});
  if (gate.size() == 0) return mx::zeros(gate.shape(), mx::float32);
  if (gate.ndim() == 0) {
    return mx::reshape(swiglu_cpu(context, mx::reshape(gate, {1}), mx::reshape(up, {1})), {});
  }
  return mx::array(
      gate.shape(), mx::float32, std::make_shared<SwigluPrimitive>(context), {gate, up});
}

}  // namespace sluice::kernels
