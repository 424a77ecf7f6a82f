#include "kernels/binary_rows.h"

#include <algorithm>

#include "kernels/cpu_primitive.h"
#include "tensor/checks.h"

namespace sluice::kernels {
namespace {

// A piece of a row: what a strided input is gathered into fits the stack, and long rows divide
// among the threads. Values are independent, so it affects no bit of the result.
constexpr int kPiece = 1024;
// Pieces worth handing to another thread: some 2 us of work.
constexpr int64_t kGrain = 4;

struct BinaryRowsJob {
  StridedRows a, b;
  float* y;
  BinaryRowsFunction function;
  ThreadPool* pool;

  void run_piece(int64_t row, int begin, int count) const {
    float gathered[2][kPiece];
    auto dense = [&](const StridedRows& rows, float* buffer) -> const float* {
      const float* source = rows.row(row) + begin * rows.column_stride;
      if (rows.column_stride == 1) return source;
      for (int i = 0; i < count; ++i) buffer[i] = source[i * rows.column_stride];
      return buffer;
    };
    function(dense(a, gathered[0]), dense(b, gathered[1]), count, y + row * a.width + begin);
  }

  void run() const {
    const int width = a.width;
    const int64_t pieces = (width + kPiece - 1) / kPiece;
    pool->parallel_for(a.count * pieces, kGrain, [&](int64_t first, int64_t last) {
      for (int64_t item = first; item < last; ++item) {
        const int begin = static_cast<int>(item % pieces) * kPiece;
        run_piece(item / pieces, begin, std::min(kPiece, width - begin));
      }
    });
  }
};

class BinaryRowsPrimitive : public CpuPrimitive {
 public:
  BinaryRowsPrimitive(const Context& context, Op op, BinaryRowsFunction function)
      : CpuPrimitive(context, op), function_(function) {}

  using CpuPrimitive::eval_cpu;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &a = inputs[0], &b = inputs[1];
    allocate_or_reuse(out, a.is_donatable() ? a : b);
    queue([job = BinaryRowsJob{
               StridedRows(a), StridedRows(b), out.data<float>(), function_, &context_.pool()}] {
      job.run();
    });
  }

 private:
  const BinaryRowsFunction function_;
};

}  // namespace

mx::array binary_rows(const Context& context,
                      Op op,
                      const mx::array& a,
                      const mx::array& b,
                      BinaryRowsFunction function) {
  for (const auto* x : {&a, &b}) {
    tensor::require_dtype(op_name(op), x == &a ? "first input" : "second input", *x, {mx::float32});
  }
  if (a.size() == 0) return mx::zeros(a.shape(), mx::float32);
  if (a.ndim() == 0) {
    auto as_row = [](const mx::array& x) { return mx::reshape(x, {1}); };
    return mx::reshape(binary_rows(context, op, as_row(a), as_row(b), function), {});
  }
  return mx::array(
      a.shape(), mx::float32, std::make_shared<BinaryRowsPrimitive>(context, op, function), {a, b});
}

}  // namespace sluice::kernels
