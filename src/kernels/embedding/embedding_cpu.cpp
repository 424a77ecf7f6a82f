#include <utility>

#include "kernels/embedding/embedding.h"
#include "kernels/linear/linear_cpu.h"
#include "mlx/allocator.h"

namespace sluice::kernels {

// Computed at once, not lazily: the ids are host data and a row is a few hundred values. Reads the
// panels of the linear kernel, so a tied head costs no second table.
mx::array embedding_cpu(const Context& context,
                        const std::vector<int32_t>& ids,
                        const LinearWeight& table) {
  SLUICE_CHECK(table.packed() != nullptr, "embedding: the packed form of the table was not kept");
  const int rows = static_cast<int>(ids.size());
  const int width = table.in_features();
  if (rows == 0) return mx::zeros({0, width}, mx::float32);
  mx::allocator::Data data = mx::allocator::malloc(size_t{4} * rows * width);
  mx::allocator::Buffer buffer = data.buffer();
  float* values = static_cast<float*>(buffer.raw_ptr());
  const PackedView& view = table.packed()->view;
  constexpr int64_t kGrain = 16;  // rows worth waking a thread for: about 10 us
  context.pool().parallel_for(rows, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) unpack_row(view, ids[i], values + i * width);
  });
  context.count_run(Op::kEmbedding);
  return mx::array(std::move(data), {rows, width}, mx::float32);
}

}  // namespace sluice::kernels
