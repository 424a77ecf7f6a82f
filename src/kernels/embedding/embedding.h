// Rows of a (quantized or dense) table: y[i] = W[ids[i]], as mlx.nn.Embedding and
// QuantizedEmbedding compute it. The table is a LinearWeight, so that a tied head shares it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linear/linear.h"

namespace sluice::kernels {

// ids: M token ids in [0, out_features) (others throw Exception). -> [M, K]; float32 from the own
// kernel, the scales' (or the table's) dtype from the reference.
mx::array embedding(const Context& context,
                    const std::vector<int32_t>& ids,
                    const LinearWeight& table);
mx::array embedding_reference(const std::vector<int32_t>& ids, const LinearWeight& table);
mx::array embedding_cpu(const Context& context,
                        const std::vector<int32_t>& ids,
                        const LinearWeight& table);

}  // namespace sluice::kernels
