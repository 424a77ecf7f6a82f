// What the MLX primitives of the own CPU kernels share. Only the ops' *_cpu.cpp include it.
//
// Life of an op: made on the engine thread (lazy), eval_cpu is called there too and only allocates
// and queues; the queued task runs on the stream's thread. MLX keeps the buffers of inputs, output
// and temporaries until then, but not the primitive: a task must own or copy what else it reads.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/context.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/primitives.h"
#include "tensor/mx.h"

namespace sluice::kernels {

class CpuPrimitive : public mx::UnaryPrimitive {
 public:
  CpuPrimitive(const Context& context, Op op)
      : UnaryPrimitive(mx::default_stream(mx::Device::cpu)), context_(context), op_(op) {}

  using mx::UnaryPrimitive::eval_cpu;
  using mx::UnaryPrimitive::eval_gpu;
  void eval_gpu(const std::vector<mx::array>&, mx::array&) override {
    throw_error(ErrorCode::kUnsupported,
                "[{}] the CPU kernel was put on a GPU stream; evaluate it on the CPU",
                op_name(op_));
  }
  const char* name() const override { return op_name(op_); }

 protected:
  // Queues task() on the stream and counts the run.
  template <class Task>
  void queue(Task&& task) {
    mx::cpu::get_command_encoder(stream()).dispatch(std::forward<Task>(task));
    context_.count_run(op_);
  }

  // floats of scratch that live until the task queued next has run.
  float* scratch(int64_t floats) {
    mx::array memory({static_cast<int>(floats)}, mx::float32, nullptr, {});
    memory.set_data(mx::allocator::malloc(floats * sizeof(float)));
    float* data = memory.data<float>();
    mx::cpu::get_command_encoder(stream()).add_temporary(std::move(memory));
    return data;
  }

  const Context& context_;

 private:
  const Op op_;
};

// Gives out memory: that of input, if nobody else will read it and it is laid out alike (so that
// out[i] lies where input[i] did), else new.
inline void allocate_or_reuse(mx::array& out, const mx::array& input) {
  if (input.is_donatable() && input.flags().row_contiguous && input.nbytes() == out.nbytes()) {
    out.copy_shared_buffer(input, out.strides(), input.flags(), input.data_size());
  } else {
    out.set_data(mx::allocator::malloc(out.nbytes()));
  }
}

// A float32 array as rows along its last axis, whatever its strides. Holds no reference.
struct StridedRows {
  explicit StridedRows(const mx::array& x)
      : data(x.data<float>()), width(x.shape(-1)), column_stride(x.strides(-1)) {
    count = width > 0 ? static_cast<int64_t>(x.size()) / width : 0;
    for (int axis = static_cast<int>(x.ndim()) - 2; axis >= 0; --axis) {
      const int64_t size = x.shape(axis), stride = x.strides(axis);
      if (size == 1) continue;
      // Axes that lie one after the other in memory are one axis: most arrays have one in the end.
      if (!sizes.empty() && stride == sizes.back() * strides.back()) {
        sizes.back() *= size;
      } else {
        sizes.push_back(size);
        strides.push_back(stride);
      }
    }
  }

  const float* row(int64_t index) const {
    int64_t offset = 0;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const bool last = axis + 1 == sizes.size();
      offset += (last ? index : index % sizes[axis]) * strides[axis];
      if (!last) index /= sizes[axis];
    }
    return data + offset;
  }

  const float* data;
  int64_t count = 0;  // of rows
  int width;
  int64_t column_stride;
  mx::SmallVector<int64_t> sizes, strides;  // innermost first, without the last axis
};

}  // namespace sluice::kernels
