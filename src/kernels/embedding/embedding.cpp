#include "kernels/embedding/embedding.h"

namespace sluice::kernels {

mx::array embedding(const Context& context,
                    const std::vector<int32_t>& ids,
                    const LinearWeight& table) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= table.out_features()) {
      throw_error(ErrorCode::kInvalidArgument,
                  "[embedding] token id {} at place {} is outside the vocabulary of {} tokens",
                  ids[i],
                  i,
                  table.out_features());
    }
  }
  return dispatch(
      context,
      Op::kEmbedding,
      [&] { return embedding_cpu(context, ids, table); },
      [&] { return embedding_reference(ids, table); });
}

}  // namespace sluice::kernels
