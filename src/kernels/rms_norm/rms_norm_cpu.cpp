#include <algorithm>

#include "kernels/cpu_primitive.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm/rms_norm_kernels.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(RmsNormKernels, rms_norm_kernels)

namespace {

// Values worth handing to another thread: about 1 us of work.
constexpr int64_t kGrainValues = 8192;

struct RmsNormJob {
  StridedRows x;
  const float* weight;
  int64_t weight_stride;
  float* y;
  float eps;
  const RmsNormKernels* kernels;
  ThreadPool* pool;
  float* dense_weight;  // scratch [width], if weight_stride != 1

  void run() const {
    const float* w = weight;
    if (dense_weight != nullptr) {
      for (int i = 0; i < x.width; ++i) dense_weight[i] = weight[i * weight_stride];
      w = dense_weight;
    }
    const int64_t grain = std::max<int64_t>(1, kGrainValues / x.width);
    pool->parallel_for(x.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* source = x.row(r);
        float* target = y + r * x.width;
        if (x.column_stride != 1) {
          for (int i = 0; i < x.width; ++i) target[i] = source[i * x.column_stride];
          source = target;
        }
        kernels->normalize(source, w, x.width, eps, target);
      }
    });
  }
};

class RmsNormPrimitive : public CpuPrimitive {
 public:
  RmsNormPrimitive(const Context& context, float eps)
      : CpuPrimitive(context, Op::kRmsNorm), eps_(eps) {}

  using CpuPrimitive::eval_cpu;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &x = inputs[0], &weight = inputs[1];
    allocate_or_reuse(out, x);
    const int64_t weight_stride = weight.shape(0) == 1 ? 1 : weight.strides(0);
    queue(
        [job = RmsNormJob{StridedRows(x),
                          weight.data<float>(),
                          weight_stride,
                          out.data<float>(),
                          eps_,
                          &rms_norm_kernels(context_.isa()),
                          &context_.pool(),
                          weight_stride == 1 ? nullptr : scratch(weight.shape(0))}] { job.run(); });
  }

 private:
  const float eps_;
};

}  // namespace

mx::array rms_norm_cpu(const Context& context,
                       const mx::array& x,
                       const mx::array& weight,
                       float eps) {
  tensor::require_dtype("rms_norm", "x", x, {mx::float32});
  tensor::require_dtype("rms_norm", "weight", weight, {mx::float32});
  if (x.size() == 0) return mx::zeros(x.shape(), mx::float32);
  return mx::array(
      x.shape(), mx::float32, std::make_shared<RmsNormPrimitive>(context, eps), {x, weight});
}

}  // namespace sluice::kernels
