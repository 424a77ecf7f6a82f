#include "kernels/embedding/embedding.h"

namespace sluice::kernels {

// As mlx.nn.QuantizedEmbedding: only the gathered rows are dequantized.
mx::array embedding_reference(const std::vector<int32_t>& ids, const LinearWeight& table) {
  SLUICE_CHECK(table.weight().has_value(), "embedding: the reference form was not kept");
  mx::array rows(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  if (!table.quantized()) return mx::take(*table.weight(), rows, 0);
  return mx::dequantize(mx::take(*table.weight(), rows, 0),
                        mx::take(*table.scales(), rows, 0),
                        mx::take(*table.biases(), rows, 0),
                        table.group_size(),
                        table.bits());
}

}  // namespace sluice::kernels
