#include <algorithm>

#include "kernels/cpu_primitive.h"
#include "kernels/gated_rms_norm/gated_rms_norm.h"
#include "kernels/gated_rms_norm/gated_rms_norm_kernels.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(GatedRmsNormKernels, gated_rms_norm_kernels)

namespace {

// Values worth handing to another thread: some 2 us of work.
constexpr int64_t kGrainValues = 4096;

struct Job {
  StridedRows x, z;
  const float* weight;
  float* y;
  float* dense;  // scratch for z, of y's size, if its last axis is strided
  float eps;
  const GatedRmsNormKernels* kernels;
  ThreadPool* pool;

  void run() const {
    const int64_t width = x.width;
    const int64_t grain = std::max<int64_t>(1, kGrainValues / width);
    pool->parallel_for(x.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float* target = y + r * width;
        const float *from_x = x.row(r), *from_z = z.row(r);
        if (x.column_stride != 1) {
          for (int i = 0; i < width; ++i) target[i] = from_x[i * x.column_stride];
          from_x = target;
        }
        if (z.column_stride != 1) {
          for (int i = 0; i < width; ++i) dense[r * width + i] = from_z[i * z.column_stride];
          from_z = dense + r * width;
        }
        kernels->apply(from_x, from_z, weight, x.width, eps, target);
      }
    });
  }
};

class GatedRmsNormPrimitive : public CpuPrimitive {
 public:
  GatedRmsNormPrimitive(const Context& context, float eps)
      : CpuPrimitive(context, Op::kGatedRmsNorm), eps_(eps) {}

  using CpuPrimitive::eval_cpu;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &x = inputs[0], &z = inputs[1], &weight = inputs[2];
    allocate_or_reuse(out, x);
    queue([job = Job{StridedRows(x),
                     StridedRows(z),
                     weight.data<float>(),
                     out.data<float>(),
                     z.strides(-1) == 1 ? nullptr : scratch(z.size()),
                     eps_,
                     &gated_rms_norm_kernels(context_.isa()),
                     &context_.pool()}] { job.run(); });
  }

 private:
  const float eps_;
};

}  // namespace

mx::array gated_rms_norm_cpu(const Context& context,
                             const mx::array& x,
                             const mx::array& z,
                             const mx::array& weight,
                             float eps) {
  tensor::require_dtype("gated_rms_norm", "x", x, {mx::float32});
  if (x.size() == 0) return mx::zeros(x.shape(), mx::float32);
  return mx::array(x.shape(),
                   mx::float32,
                   std::make_shared<GatedRmsNormPrimitive>(context, eps),
                   {x, z, mx::contiguous(weight)});
}

}  // namespace sluice::kernels
