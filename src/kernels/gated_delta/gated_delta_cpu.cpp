#include <algorithm>
#include <cstring>

#include "kernels/cpu_primitive.h"
#include "kernels/gated_delta/gated_delta.h"
#include "kernels/gated_delta/gated_delta_kernels.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(GatedDeltaKernels, gated_delta_kernels)

namespace {

// Values of state times tokens worth handing to another thread: some 4 us of work.
constexpr int64_t kGrainValues = 32768;
constexpr int kMaxKeyDim = 1024;  // of the tile on the stack: 64 KiB

// A float32 array [N, H, D] or [N, H] with dense last axes, by token and head.
struct TokenHeads {
  const float* data = nullptr;
  int64_t token_stride = 0;
  int64_t head_stride = 0;

  TokenHeads() = default;
  TokenHeads(const float* data, int heads, int dim)
      : data(data), token_stride(int64_t{heads} * dim), head_stride(dim) {}
  explicit TokenHeads(const mx::array& x)
      : data(x.data<float>()), token_stride(x.strides(0)), head_stride(x.strides(1)) {}
  const float* head(int h) const { return data + h * head_stride; }
};

// An input whose last axis is not dense is copied first.
bool is_sparse(const mx::array& x) {
  return x.ndim() == 3 && x.shape(-1) > 1 && x.strides(-1) != 1;
}
struct Gather {
  StridedRows source;
  float* target;

  void run() const {
    for (int64_t r = 0; r < source.count; ++r) {
      const float* from = source.row(r);
      float* to = target + r * source.width;
      for (int i = 0; i < source.width; ++i) to[i] = from[i * source.column_stride];
    }
  }
};

struct JobRow {
  std::vector<int32_t> tokens;
  float* state;
  bool settled;
};

struct Job {
  GatedDeltaShape shape;
  std::vector<JobRow> rows;
  std::vector<Gather> gathers;
  TokenHeads q, k, v, g, beta;
  bool query = true;
  bool vector_gate = false;
  float* y = nullptr;  // [N, Hv, Dv]
  int tokens = 0;
  bool covered = true;  // every token belongs to a row
  const GatedDeltaKernels* kernels = nullptr;
  ThreadPool* pool = nullptr;

  int panels() const { return (shape.value_dim + kDeltaPanelRows - 1) / kDeltaPanelRows; }

  void run_panel(const JobRow& row, int head, int index) const {
    alignas(64) float tile[kMaxKeyDim * kDeltaPanelRows];
    const int first = index * kDeltaPanelRows;
    const int key_head = shape.key_head_of(head);
    const int64_t y_row = int64_t{shape.value_heads} * shape.value_dim;
    float* state = row.state + (int64_t{head} * panels() + index) * shape.key_dim * kDeltaPanelRows;
    DeltaPanel p;
    p.state_in = state;
    p.state_out = row.settled ? state : nullptr;
    p.tile = tile;
    p.tokens = row.tokens.data();
    p.count = static_cast<int>(row.tokens.size());
    if (query) p.q = q.head(key_head), p.q_stride = q.token_stride;
    p.k = k.head(key_head), p.k_stride = k.token_stride;
    p.v = v.head(head) + first, p.v_stride = v.token_stride;
    p.g = g.head(head), p.g_stride = g.token_stride;
    p.vector_gate = vector_gate;
    p.beta = beta.head(head), p.beta_stride = beta.token_stride;
    if (query) p.y = y + int64_t{head} * shape.value_dim + first, p.y_stride = y_row;
    p.dk = shape.key_dim;
    p.lanes = std::min(kDeltaPanelRows, shape.value_dim - first);
    kernels->run(p);
  }

  void run() const {
    for (const auto& gather : gathers) gather.run();
    if (query && !covered) {
      std::memset(y, 0, sizeof(float) * tokens * shape.value_heads * shape.value_dim);
    }
    const int64_t per_row = int64_t{shape.value_heads} * panels();
    int64_t longest = 1;
    for (const auto& row : rows) longest = std::max<int64_t>(longest, row.tokens.size());
    const int64_t grain =
        std::max<int64_t>(1, kGrainValues / (longest * shape.key_dim * kDeltaPanelRows));
    pool->parallel_for(rows.size() * per_row, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int index = static_cast<int>(item % per_row);
        run_panel(rows[item / per_row], index / panels(), index % panels());
      }
    });
  }
};

Job make_job(const Context& context, const GatedDeltaShape& shape, bool vector_gate, int tokens) {
  Job job;
  job.shape = shape;
  job.vector_gate = vector_gate;
  job.tokens = tokens;
  job.kernels = &gated_delta_kernels(context.isa());
  job.pool = &context.pool();
  return job;
}

// What a primitive needs of the rows: the handles may be gone when it is evaluated, so the states
// are inputs of the primitive.
struct RowTokens {
  std::vector<int32_t> tokens;
  bool settled;
};

class GatedDeltaPrimitive : public CpuPrimitive {
 public:
  GatedDeltaPrimitive(const Context& context,
                      const GatedDeltaShape& shape,
                      std::vector<RowTokens> rows)
      : CpuPrimitive(context, Op::kGatedDelta), shape_(shape), rows_(std::move(rows)) {}

  using CpuPrimitive::eval_cpu;
  // Inputs: q, k, v, g, beta, then the rows' states, which are written in place.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    Job job = make_job(context_, shape_, inputs[3].ndim() == 3, out.shape(0));
    TokenHeads* const places[] = {&job.q, &job.k, &job.v, &job.g, &job.beta};
    for (int i = 0; i < 5; ++i) {
      const auto& x = inputs[i];
      *places[i] = TokenHeads(x);
      if (!is_sparse(x)) continue;
      job.gathers.push_back({StridedRows(x), scratch(x.size())});
      *places[i] = TokenHeads(job.gathers.back().target, x.shape(1), x.shape(2));
    }
    job.y = out.data<float>();
    size_t listed = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      auto state = inputs[5 + r];  // a handle: data() of a const array is const
      job.rows.push_back({rows_[r].tokens, state.data<float>(), rows_[r].settled});
      listed += rows_[r].tokens.size();
    }
    job.covered = listed == static_cast<size_t>(job.tokens);
    queue([job = std::move(job)] { job.run(); });
  }

 private:
  const GatedDeltaShape shape_;
  const std::vector<RowTokens> rows_;
};

void require_own(const char* name, const mx::array& x) {
  tensor::require_dtype("gated_delta", name, x, {mx::float32});
}

void check_key_dim(const GatedDeltaShape& shape) {
  if (shape.key_dim > kMaxKeyDim) {
    throw_error(ErrorCode::kUnsupported,
                "[gated_delta] key_dim is {}; the own kernel takes at most {}",
                shape.key_dim,
                kMaxKeyDim);
  }
}

}  // namespace

mx::array gated_delta_cpu(const Context& context,
                          const mx::array& q,
                          const mx::array& k,
                          const mx::array& v,
                          const mx::array& g,
                          const mx::array& beta,
                          const GatedDeltaShape& shape,
                          const std::vector<DeltaRow>& rows) {
  check_key_dim(shape);
  for (const auto& [name, x] : {std::pair{"q", &q}, {"k", &k}, {"v", &v}, {"beta", &beta}}) {
    require_own(name, *x);
  }
  const mx::Shape y_shape{k.shape(0), shape.value_heads, shape.value_dim};
  if (k.shape(0) == 0) return mx::zeros(y_shape, mx::float32);
  std::vector<RowTokens> tokens;
  std::vector<mx::array> inputs{q, k, v, g, beta};
  for (const auto& row : rows) {
    tokens.push_back({row.tokens, row.settled});
    inputs.push_back(*row.state);
  }
  return mx::array(y_shape,
                   mx::float32,
                   std::make_shared<GatedDeltaPrimitive>(context, shape, std::move(tokens)),
                   std::move(inputs));
}

void gated_delta_replay_cpu(const Context& context,
                            const mx::array& k,
                            const mx::array& v,
                            const mx::array& g,
                            const mx::array& beta,
                            const GatedDeltaShape& shape,
                            const std::vector<DeltaRow>& rows) {
  check_key_dim(shape);
  for (const auto& [name, x] : {std::pair{"k", &k}, {"v", &v}, {"beta", &beta}}) {
    require_own(name, *x);
  }
  Job job = make_job(context, shape, g.ndim() == 3, k.shape(0));
  job.query = false;
  // Dense copies, if any, must live until the job has run.
  std::vector<mx::array> inputs{k, v, g, beta};
  TokenHeads* const places[] = {&job.k, &job.v, &job.g, &job.beta};
  for (int i = 0; i < 4; ++i) {
    if (is_sparse(inputs[i])) inputs[i] = mx::contiguous(inputs[i]);
    inputs[i].eval();
    *places[i] = TokenHeads(inputs[i]);
  }
  for (const auto& row : rows) {
    job.rows.push_back({row.tokens, row.state->data<float>(), true});
  }
  job.run();
  context.count_run(Op::kGatedDelta);
}

}  // namespace sluice::kernels
