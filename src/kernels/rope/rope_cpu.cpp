// Products and sums that are never fused, so the compiler's vectors give the bits that scalars
// would: no instruction set variants are needed. A row's bits depend on its values and positions.
#include <algorithm>

#include "kernels/cpu_primitive.h"
#include "kernels/rope/rope.h"
#include "kernels/rope/rope_angles.h"
#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

// Values worth handing to another thread: about 2 us of work.
constexpr int64_t kGrainValues = 8192;

struct RopeJob {
  StridedRows x;  // [N * H] rows of the head size
  float* y;
  int heads;
  int dims;
  bool traditional;
  float input_scale;
  std::shared_ptr<RopeAngles> angles;
  ThreadPool* pool;

  // y may be x: each pair is read before it is written.
  void rotate_halves(const float* source, const float* c, const float* s, float* target) const {
    const int half = dims / 2;
    const int64_t stride = x.column_stride;
    if (stride == 1) return rotate_dense_halves(source, c, s, target);
    for (int i = 0; i < half; ++i) {
      const float a = source[i * stride] * input_scale;
      const float b = source[(i + half) * stride] * input_scale;
      target[i] = a * c[i] - b * s[i];
      target[i + half] = a * s[i] + b * c[i];
    }
  }

  void rotate_dense_halves(const float* source,
                           const float* c,
                           const float* s,
                           float* target) const {
    const int half = dims / 2;
    const float scale = input_scale;
    // Different i never meet, in place or not.
#pragma GCC ivdep
    for (int i = 0; i < half; ++i) {
      const float a = source[i] * scale, b = source[i + half] * scale;
      target[i] = a * c[i] - b * s[i];
      target[i + half] = a * s[i] + b * c[i];
    }
  }

  void rotate_neighbours(const float* source, const float* c, const float* s, float* target) const {
    for (int i = 0; i < dims / 2; ++i) {
      const float a = source[2 * i * x.column_stride] * input_scale;
      const float b = source[(2 * i + 1) * x.column_stride] * input_scale;
      target[2 * i] = a * c[i] - b * s[i];
      target[2 * i + 1] = a * s[i] + b * c[i];
    }
  }

  void run_token(int64_t token) const {
    const float* c = angles->cosines(token);
    const float* s = angles->sines(token);
    for (int64_t row = token * heads; row < (token + 1) * heads; ++row) {
      const float* source = x.row(row);
      float* target = y + row * x.width;
      traditional ? rotate_neighbours(source, c, s, target) : rotate_halves(source, c, s, target);
      if (source == target) continue;
      for (int i = dims; i < x.width; ++i) target[i] = source[i * x.column_stride];
    }
  }

  void run() const {
    angles->fill(*pool);
    const int64_t grain = std::max<int64_t>(1, kGrainValues / (int64_t{heads} * x.width));
    pool->parallel_for(x.count / heads, grain, [&](int64_t begin, int64_t end) {
      for (int64_t token = begin; token < end; ++token) run_token(token);
    });
  }
};

class RopePrimitive : public CpuPrimitive {
 public:
  RopePrimitive(const Context& context, const RopeSpec& spec, std::shared_ptr<RopeAngles> angles)
      : CpuPrimitive(context, Op::kRope), spec_(spec), angles_(std::move(angles)) {}

  using CpuPrimitive::eval_cpu;
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array& x = inputs[0];
    allocate_or_reuse(out, x);
    queue([job = RopeJob{StridedRows(x),
                         out.data<float>(),
                         x.shape(1),
                         spec_.dims,
                         spec_.traditional,
                         spec_.input_scale,
                         angles_,
                         &context_.pool()}] { job.run(); });
  }

 private:
  const RopeSpec spec_;
  const std::shared_ptr<RopeAngles> angles_;
};

}  // namespace

mx::array rope_cpu(const Context& context,
                   const mx::array& x,
                   const std::vector<RowSpan>& rows,
                   const RopeSpec& spec) {
  tensor::require_dtype("rope", "x", x, {mx::float32});
  return mx::array(x.shape(),
                   mx::float32,
                   std::make_shared<RopePrimitive>(context, spec, rope_angles(rows, spec)),
                   {x});
}

}  // namespace sluice::kernels
