#include <algorithm>
#include <cstring>

#include "kernels/causal_conv/causal_conv.h"
#include "kernels/causal_conv/causal_conv_kernels.h"
#include "kernels/cpu_primitive.h"
#include "kernels/simd/isa_tables.h"
#include "tensor/checks.h"

namespace sluice::kernels {

SLUICE_ISA_TABLES(CausalConvKernels, causal_conv_kernels)

namespace {

// Channels of one item: whole cache lines of every token. Affects no bit of the result.
constexpr int kBlockChannels = 256;
// Outputs worth handing to another thread: some 4 us of work.
constexpr int64_t kGrainOutputs = 8192;

struct RowTokens {
  std::vector<int32_t> tokens;
  bool settled;
};

struct Job {
  std::vector<RowTokens> rows;
  std::vector<float*> tails;
  const float* x;
  int64_t x_stride;
  const float* weight;
  int taps, channels, tokens;
  float* y;
  bool covered;
  const CausalConvKernels* kernels;
  ThreadPool* pool;

  void run_block(size_t r, int first) const {
    ConvBlock b;
    b.x = x + first, b.x_stride = x_stride;
    b.weight = weight + first, b.weight_stride = channels;
    b.tail = tails[r] + first, b.tail_stride = channels;
    b.write_tail = rows[r].settled;
    b.tokens = rows[r].tokens.data();
    b.count = static_cast<int>(rows[r].tokens.size());
    b.y = y + first, b.y_stride = channels;
    b.taps = taps;
    b.channels = std::min(kBlockChannels, channels - first);
    kernels->run(b);
  }

  void run() const {
    if (!covered) std::memset(y, 0, sizeof(float) * tokens * channels);
    const int64_t blocks = (channels + kBlockChannels - 1) / kBlockChannels;
    int64_t longest = 1;
    for (const auto& row : rows) longest = std::max<int64_t>(longest, row.tokens.size());
    const int64_t grain = std::max<int64_t>(1, kGrainOutputs / (longest * kBlockChannels));
    pool->parallel_for(rows.size() * blocks, grain, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        run_block(item / blocks, static_cast<int>(item % blocks) * kBlockChannels);
      }
    });
  }
};

class CausalConvPrimitive : public CpuPrimitive {
 public:
  CausalConvPrimitive(const Context& context, std::vector<RowTokens> rows)
      : CpuPrimitive(context, Op::kCausalConv), rows_(std::move(rows)) {}

  using CpuPrimitive::eval_cpu;
  // Inputs: x, the weight by tap, then the rows' tails, which are written in place.
  void eval_cpu(const std::vector<mx::array>& inputs, mx::array& out) override {
    const mx::array &x = inputs[0], &weight = inputs[1];
    out.set_data(mx::allocator::malloc(out.nbytes()));
    Job job;
    job.rows = rows_;
    size_t listed = 0;
    for (size_t r = 0; r < rows_.size(); ++r) {
      auto tail = inputs[2 + r];  // a handle: data() of a const array is const
      job.tails.push_back(tail.data<float>());
      listed += rows_[r].tokens.size();
    }
    job.tokens = x.shape(0);
    job.channels = x.shape(1);
    job.taps = weight.shape(0);
    job.covered = listed == static_cast<size_t>(job.tokens);
    job.weight = weight.data<float>();
    job.y = out.data<float>();
    job.kernels = &causal_conv_kernels(context_.isa());
    job.pool = &context_.pool();
    job.x = x.data<float>();
    job.x_stride = x.strides(0);
    if (x.strides(1) == 1 || job.channels == 1) {
      queue([job = std::move(job)] { job.run(); });
      return;
    }
    float* dense = scratch(x.size());
    job.x = dense;
    job.x_stride = job.channels;
    queue([job = std::move(job), source = StridedRows(x), dense] {
      for (int64_t r = 0; r < source.count; ++r) {
        const float* from = source.row(r);
        for (int i = 0; i < source.width; ++i) {
          dense[r * source.width + i] = from[i * source.column_stride];
        }
      }
      job.run();
    });
  }

 private:
  const std::vector<RowTokens> rows_;
};

}  // namespace

mx::array causal_conv_cpu(const Context& context,
                          const mx::array& x,
                          const ConvWeight& weight,
                          const std::vector<ConvRow>& rows) {
  tensor::require_dtype("causal_conv", "x", x, {mx::float32});
  SLUICE_CHECK(weight.by_tap().has_value(), "causal_conv: the own kernel's weight was not kept");
  if (weight.taps() > kMaxConvTaps) {
    throw_error(ErrorCode::kUnsupported,
                "[causal_conv] {} taps; the own kernel takes at most {}",
                weight.taps(),
                kMaxConvTaps);
  }
  if (x.shape(0) == 0) return mx::zeros(x.shape(), mx::float32);
  std::vector<RowTokens> tokens;
  std::vector<mx::array> inputs{x, *weight.by_tap()};
  for (const auto& row : rows) {
    tokens.push_back({row.tokens, row.settled});
    inputs.push_back(*row.tail);
  }
  return mx::array(x.shape(),
                   mx::float32,
                   std::make_shared<CausalConvPrimitive>(context, std::move(tokens)),
                   std::move(inputs));
}

}  // namespace sluice::kernels
