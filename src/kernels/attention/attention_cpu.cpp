#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_kernels.h"
#include "kernels/attention/attention_plan.h"
#include "kernels/cpu_primitive.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(AttentionKernels, attention_kernels)

namespace {

// Copied values worth handing to another thread: about 5 us of a transposing copy.
constexpr int64_t kGrainCopied = 8192;

struct AttentionJob {
  std::shared_ptr<const AttentionPlan> plan;
  const AttentionKernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  AttentionView view;
  const float* q = nullptr;
  float* out = nullptr;
  const float* k = nullptr;  // [N, Hkv, Dk]
  const float* v = nullptr;  // [N, Hkv, Dv]
  int64_t k_strides[3] = {0, 0, 0};
  int64_t v_strides[3] = {0, 0, 0};
  float* keys = nullptr;  // the storage that view reads
  float* values = nullptr;
  float* partials = nullptr;

  void write(const PageWrite& part, int kv_head) const {
    const int64_t head = int64_t{part.page} * view.kv_heads + kv_head;
    const float* source = k + part.first_token * k_strides[0] + kv_head * k_strides[1];
    float* key = keys + head * view.key_dim * kPageSize + part.slot;
    for (int d = 0; d < view.key_dim; ++d) {
      const float* column = source + d * k_strides[2];
      for (int i = 0; i < part.count; ++i) key[i] = column[i * k_strides[0]];
      key += kPageSize;
    }
    source = v + part.first_token * v_strides[0] + kv_head * v_strides[1];
    float* value = values + (head * kPageSize + part.slot) * view.value_dim;
    for (int i = 0; i < part.count; ++i) {
      for (int d = 0; d < view.value_dim; ++d) value[d] = source[d * v_strides[2]];
      source += v_strides[0];
      value += view.value_dim;
    }
  }

  AttentionBlock block(const AttentionUnit& unit) const {
    const AttentionRow& row = plan->rows[unit.row];
    const int64_t token = row.span.first_token + unit.first_query;
    AttentionBlock result;
    result.q = q + token * view.q_strides[0] + unit.first_head * view.q_strides[1];
    result.out = out + token * view.out_strides[0] + unit.first_head * view.out_strides[1];
    result.pages = row.pages.data();
    result.kv_head = unit.kv_head;
    result.queries = unit.queries;
    result.heads = unit.heads;
    result.first_position = row.span.first_position + unit.first_query;
    return result;
  }

  void run_task(const AttentionTask& task) const {
    const AttentionUnit& unit = plan->units[task.unit];
    if (task.tile < 0) return kernels->attend(view, block(unit));
    const int64_t step = partial_floats(unit.queries * unit.heads, view.value_dim);
    kernels->attend_tile(view, block(unit), task.tile, partials + unit.partials + task.tile * step);
  }

  // Three phases, each done before the next begins: all rows are written before any is read.
  void run() const {
    const int heads = view.kv_heads;
    const int64_t items = static_cast<int64_t>(plan->writes.size()) * heads;
    const AttentionRow& last = plan->rows.back();
    const int64_t copied =
        int64_t{last.span.first_token + last.span.count} * heads * (view.key_dim + view.value_dim);
    const int64_t grain = std::max<int64_t>(1, kGrainCopied / std::max<int64_t>(1, copied / items));
    pool->parallel_for(items, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        write(plan->writes[i / heads], static_cast<int>(i % heads));
      }
    });
    const auto& tasks = plan->tasks;
    pool->parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_task(tasks[i]);
    });
    const auto& split = plan->split_units;
    constexpr int64_t kGrainMerged = 8;
    pool->parallel_for(
        static_cast<int64_t>(split.size()), kGrainMerged, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const AttentionUnit& unit = plan->units[split[i]];
            kernels->merge_tiles(view, block(unit), partials + unit.partials);
          }
        });
  }
};

class AttentionPrimitive : public CpuPrimitive {
 public:
  AttentionPrimitive(const Context& context, float scale, std::shared_ptr<const AttentionPlan> plan)
      : CpuPrimitive(context, Op::kAttention), scale_(scale), plan_(std::move(plan)) {}

  using CpuPrimitive::eval_cpu;
  // inputs: q, k, v and the storage's keys and values, which are written.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &q = inputs[0], &k = inputs[1], &v = inputs[2];
    // A block reads its queries before it writes its output, so they may share memory.
    allocate_or_reuse(out, q);
    AttentionJob job;
    job.plan = plan_;
    job.kernels = &attention_kernels(context_.isa());
    job.pool = &context_.pool();
    job.q = q.data<float>();
    job.out = out.data<float>();
    job.k = k.data<float>();
    job.v = v.data<float>();
    for (int axis = 0; axis < 3; ++axis) {
      job.view.q_strides[axis] = q.strides(axis);
      job.k_strides[axis] = k.strides(axis);
      job.v_strides[axis] = v.strides(axis);
    }
    job.keys = const_cast<float*>(inputs[3].data<float>());
    job.values = const_cast<float*>(inputs[4].data<float>());
    const AttentionShape& shape = plan_->shape;
    job.view.keys = job.keys;
    job.view.values = job.values;
    job.view.kv_heads = shape.kv_heads;
    job.view.key_dim = shape.key_dim;
    job.view.value_dim = shape.value_dim;
    job.view.scale = scale_;
    job.view.out_strides[0] = int64_t{shape.heads} * shape.value_dim;
    job.view.out_strides[1] = shape.value_dim;
    if (plan_->partial_floats > 0) job.partials = scratch(plan_->partial_floats);
    queue([job] { job.run(); });
  }

 private:
  const float scale_;
  const std::shared_ptr<const AttentionPlan> plan_;
};

void require_own(const char* name, const mx::array& x) {
  tensor::require_dtype("attention", name, x, {mx::float32});
}

void require_in_place(const char* name, const mx::array& x) {
  require_own(name, x);
  SLUICE_CHECK(x.is_available() && x.flags().row_contiguous,
               "attention: {} must be evaluated and contiguous to be written in place",
               name);
}

}  // namespace

mx::array attention_cpu(const Context& context,
                        const mx::array& q,
                        const mx::array& k,
                        const mx::array& v,
                        AttentionStorage& storage,
                        const std::vector<AttentionRow>& rows,
                        const AttentionOptions& options) {
  require_own("q", q);
  require_own("k", k);
  require_own("v", v);
  require_in_place("storage.keys", storage.keys);
  require_in_place("storage.values", storage.values);
  const AttentionShape shape{q.shape(1), k.shape(1), k.shape(2), v.shape(2)};
  if (std::max(shape.key_dim, shape.value_dim) > kMaxHeadDim) {
    throw_error(ErrorCode::kUnsupported,
                "[attention] head sizes {} and {}; the CPU kernel supports up to {}, the "
                "reference any",
                shape.key_dim,
                shape.value_dim,
                kMaxHeadDim);
  }
  auto plan = std::make_shared<const AttentionPlan>(rows, shape, context.pool().size());
  return mx::array({q.shape(0), shape.heads, shape.value_dim},
                   mx::float32,
                   std::make_shared<AttentionPrimitive>(context, options.scale, std::move(plan)),
                   {q, k, v, storage.keys, storage.values});
}

}  // namespace sluice::kernels
