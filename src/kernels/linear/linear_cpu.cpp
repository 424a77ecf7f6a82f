#include "kernels/linear/linear_cpu.h"

#include <algorithm>
#include <utility>

#include "kernels/linear/linear.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"
#include "tensor/checks.h"

namespace sluice::kernels {

namespace {

// Prepared rows of one block: a part of the second-level cache, so that a block stays there while
// the panels pass by. Affects no bit of the result.
constexpr int64_t kBlockBytes = 224 * 1024;

struct Job {
  const LinearKernels* kernels = nullptr;
  const PackedView* weight = nullptr;
  ThreadPool* pool = nullptr;
  const float* x = nullptr;
  int64_t row_stride = 0;
  int64_t column_stride = 1;
  int rows = 0;
  float* prepared = nullptr;  // [rows, prepared_row], 64-byte aligned
  float* gathered = nullptr;  // [rows, k] if column_stride != 1
  float* y = nullptr;

  int block_rows() const {
    const int64_t fitting = kBlockBytes / (4 * weight->prepared_row);
    const int64_t tiles = std::max<int64_t>(1, fitting / kernels->max_tile_rows);
    return static_cast<int>(tiles) * kernels->max_tile_rows;
  }

  void prepare_block(int first, int count) const {
    const float* source = x + first * row_stride;
    int64_t stride = row_stride;
    if (column_stride != 1) {
      float* target = gathered + int64_t{first} * weight->k;
      for (int r = 0; r < count; ++r) {
        for (int k = 0; k < weight->k; ++k) {
          target[int64_t{r} * weight->k + k] = source[r * row_stride + k * column_stride];
        }
      }
      source = target;
      stride = weight->k;
    }
    kernels->prepare(*weight, source, stride, count, prepared + first * weight->prepared_row);
  }

  // Panels per item: four is what the kernels like best, but few panels must also divide evenly
  // among the threads. Affects no bit of the result.
  int panels_per_item(int blocks) const {
    const int threads = pool->size();
    if (blocks > 1) return 4;
    int best = 4, best_time = 0;
    for (int panels = 4; panels >= 1; --panels) {
      const int items = (weight->num_panels + panels - 1) / panels;
      const int time = (items + threads - 1) / threads * panels;
      if (panels == 4 || time < best_time) best = panels, best_time = time;
    }
    return best;
  }

  void run() const {
    const int step = block_rows();
    const int blocks = (rows + step - 1) / step;
    pool->parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int first = static_cast<int>(b) * step;
        prepare_block(first, std::min(step, rows - first));
      }
    });
    const int panels = panels_per_item(blocks);
    const int items = (weight->num_panels + panels - 1) / panels;
    pool->parallel_for(int64_t{blocks} * items, 1, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t block = begin / items;
        const int64_t block_end = std::min(end, (block + 1) * items);
        const int first = static_cast<int>(block) * step;
        kernels->multiply(
            *weight,
            prepared + first * weight->prepared_row,
            std::min(step, rows - first),
            static_cast<int>(begin - block * items) * panels,
            std::min(weight->num_panels, static_cast<int>(block_end - block * items) * panels),
            y + int64_t{first} * weight->n);
        begin = block_end;
      }
    });
  }
};

// float32 scratch of one op, freed by MLX when the op has run.
mx::array scratch_array(int64_t floats) {
  mx::array scratch({static_cast<int>(floats)}, mx::float32, nullptr, {});
  scratch.set_data(mx::allocator::malloc(floats * sizeof(float)));
  return scratch;
}

class LinearPrimitive : public mx::UnaryPrimitive {
 public:
  LinearPrimitive(mx::Stream stream,
                  const Context& context,
                  std::shared_ptr<const PackedLinear> packed)
      : UnaryPrimitive(stream), context_(context), packed_(std::move(packed)) {}

  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array& x = inputs[0];
    const PackedView& weight = packed_->view;
    out.set_data(mx::allocator::malloc(out.nbytes()));

    Job job;
    job.kernels = weight.activations == Activations::kInt8 ? &linear_int8_kernels(context_.isa())
                                                           : &linear_kernels(context_.isa());
    job.weight = &weight;
    job.pool = &context_.pool();
    job.x = x.data<float>();
    job.row_stride = x.strides(0);
    job.column_stride = x.strides(1);
    job.rows = x.shape(0);
    job.y = out.data<float>();
    const bool gather = job.column_stride != 1 && weight.k > 1;
    if (!gather) job.column_stride = 1;

    constexpr int64_t kAlign = 16;  // floats in 64 bytes
    const int64_t prepared_floats = job.rows * weight.prepared_row;
    mx::array scratch =
        scratch_array(prepared_floats + kAlign + (gather ? int64_t{job.rows} * weight.k : 0));
    float* memory = scratch.data<float>();
    job.prepared = memory + (-reinterpret_cast<uintptr_t>(memory) % 64) / sizeof(float);
    job.gathered = job.prepared + prepared_floats;

    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.set_input_array(x);
    encoder.set_output_array(out);
    encoder.add_temporary(std::move(scratch));
    // MLX keeps the buffers of x and out until the task has run; the packed weight is ours to keep.
    encoder.dispatch([job, packed = packed_] { job.run(); });
    context_.count_run(Op::kLinear);
  }

  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw_error(ErrorCode::kUnsupported, "[linear] the CPU kernel was put on a GPU stream");
  }

  const char* name() const override { return "SluiceLinear"; }

 private:
  const Context& context_;
  std::shared_ptr<const PackedLinear> packed_;
};

}  // namespace

mx::array linear_cpu(const Context& context, const mx::array& x, const LinearWeight& weight) {
  SLUICE_CHECK(weight.packed() != nullptr, "linear: the packed form of the weight was not kept");
  tensor::require_shape("linear", "x", x, {tensor::kAnyDim, weight.in_features()});
  tensor::require_dtype("linear", "x", x, {mx::float32});
  const mx::Shape shape{x.shape(0), weight.out_features()};
  if (x.shape(0) == 0) return mx::zeros(shape, mx::float32);
  const mx::Stream stream = mx::default_stream(mx::Device::cpu);
  return mx::array(
      shape, mx::float32, std::make_shared<LinearPrimitive>(stream, context, weight.packed()), {x});
}

}  // namespace sluice::kernels
