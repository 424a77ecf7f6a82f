#include "models/packed_model.h"

#include <algorithm>
#include <set>

namespace sluice::models {

void evaluate(const PassOutput& output) {
  std::vector<mx::array> arrays = output.effects;
  if (output.logits) arrays.push_back(*output.logits);
  if (output.hidden) arrays.push_back(*output.hidden);
  mx::eval(std::move(arrays));
}

namespace {

// The tokens whose logits the rows want, as indices into a pass that starts at first_token.
std::vector<int32_t> logit_indices(std::span<const Row> rows, int first_token) {
  std::vector<int32_t> indices;
  for (const auto& row : rows) {
    if (row.logits == LogitsWanted::kNone) continue;
    const int end = row.first_token + row.count - first_token;
    const int begin = row.logits == LogitsWanted::kAll ? end - row.count : end - 1;
    for (int i = begin; i < end; ++i) indices.push_back(i);
  }
  return indices;
}

std::vector<int32_t> hidden_indices(std::span<const Row> rows, int first_token) {
  std::vector<int32_t> indices;
  for (const auto& row : rows) {
    if (!row.hidden) continue;
    for (int i = 0; i < row.count; ++i) indices.push_back(row.first_token - first_token + i);
  }
  return indices;
}

// x[indices], without a copy where that is all of x.
mx::array take_rows(const mx::array& x, const std::vector<int32_t>& indices) {
  if (static_cast<int>(indices.size()) == x.shape(0)) return x;
  return mx::take(x, mx::array(indices.data(), {static_cast<int>(indices.size())}, mx::int32), 0);
}

std::optional<mx::array> join(const std::vector<mx::array>& parts) {
  if (parts.empty()) return std::nullopt;
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

}  // namespace

Result<std::optional<mx::Dtype>> computing_dtype(const kernels::Context& context,
                                                 const ModelOptions& options,
                                                 const loader::Checkpoint& checkpoint) {
  if (!context.reference()) {
    if (options.dtype.value_or(mx::float32) != mx::float32) {
      return make_error(ErrorCode::kUnsupported,
                        "the own CPU kernels compute in float32; ask for that dtype, or for the "
                        "reference kernels to compute in another");
    }
    return std::optional(mx::float32);
  }
  // A GGUF file mixes float16 scales with float32 norms; float32 holds both exactly.
  if (!options.dtype && checkpoint.format == "gguf") return std::optional(mx::float32);
  return options.dtype;
}

int cache_positions(const ModelOptions& options, int max_positions) {
  return options.cache_tokens > 0 ? options.cache_tokens : std::min(max_positions, 8192);
}

std::vector<nn::GatedDeltaRow> PassRows::delta_layer(int i) const {
  auto rows = delta;
  for (size_t r = 0; r < rows.size(); ++r) rows[r].slot = &sequences[r]->slot(i);
  return rows;
}

std::unique_ptr<cache::SequenceState> PackedModel::new_sequence() {
  return std::make_unique<cache::SequenceState>(*pool_, recurrent_.context ? &recurrent_ : nullptr);
}

void PackedModel::allocate_slots(const cache::GatedDeltaLayout& layout) {
  recurrent_ = {&context_, layout};
  traits_.cache_bytes_per_sequence = layout.nbytes(context_);
}

void PackedModel::allocate_storage(
    int layers, int positions, int kv_heads, int key_dim, int value_dim, mx::Dtype dtype) {
  const int pages = (positions + kernels::kPageSize - 1) / kernels::kPageSize;
  pool_ = std::make_unique<cache::PagePool>(pages);
  for (int layer = 0; layer < layers; ++layer) {
    storage_.push_back(
        kernels::AttentionStorage::allocate(pages, kv_heads, key_dim, value_dim, dtype));
  }
  traits_.cache_bytes_per_token =
      static_cast<size_t>(layers) * kv_heads * (key_dim + value_dim) * mx::size_of(dtype);
  traits_.cache_tokens = pages * kernels::kPageSize;
}

Status PackedModel::check(const Pass& pass) const {
  int next_token = 0;
  std::set<const cache::SequenceState*> seen;
  for (size_t i = 0; i < pass.rows.size(); ++i) {
    const auto& row = pass.rows[i];
    if (row.sequence == nullptr || !seen.insert(row.sequence).second) {
      return make_error(ErrorCode::kInvalidArgument,
                        "row {} has {}",
                        i,
                        row.sequence ? "the same sequence as an earlier row" : "no sequence");
    }
    if (row.first_token != next_token || row.count < 1) {
      return make_error(ErrorCode::kInvalidArgument,
                        "row {} starts at token {} with {} tokens; rows must cover the pass in "
                        "order, so it must start at {} with at least one",
                        i,
                        row.first_token,
                        row.count,
                        next_token);
    }
    if (row.first_position != row.sequence->length()) {
      return make_error(ErrorCode::kInvalidArgument,
                        "row {} starts at position {}, but its sequence has {} positions",
                        i,
                        row.first_position,
                        row.sequence->length());
    }
    if (row.count > traits_.max_positions - row.first_position) {
      return make_error(ErrorCode::kInvalidArgument,
                        "row {} would reach {} positions; the model's context has {}",
                        i,
                        static_cast<int64_t>(row.first_position) + row.count,
                        traits_.max_positions);
    }
    next_token += row.count;
  }
  if (pass.rows.empty() || next_token != static_cast<int>(pass.tokens.size())) {
    return make_error(ErrorCode::kInvalidArgument,
                      "the rows cover {} of the pass's {} tokens",
                      next_token,
                      pass.tokens.size());
  }
  for (size_t i = 0; i < pass.tokens.size(); ++i) {
    if (pass.tokens[i] < 0 || pass.tokens[i] >= traits_.vocab_size) {
      return make_error(ErrorCode::kInvalidArgument,
                        "token {} of the pass is {}; the vocabulary has {} entries",
                        i,
                        pass.tokens[i],
                        traits_.vocab_size);
    }
  }
  return {};
}

PassOutput PackedModel::run(const std::vector<int32_t>& tokens, std::span<const Row> rows) {
  const int first_token = rows.front().first_token;
  PassRows pass_rows;
  for (const auto& row : rows) {
    const kernels::RowSpan span{row.first_token - first_token, row.count, row.first_position};
    pass_rows.attention.push_back({span, row.sequence->pages()});
    pass_rows.delta.push_back({span, nullptr, row.settlement == Settlement::kSettled});
    pass_rows.sequences.push_back(row.sequence);
  }
  auto hidden = layers_forward(tokens, pass_rows);
  PassOutput output;
  if (auto indices = logit_indices(rows, first_token); !indices.empty()) {
    output.logits = head_forward(take_rows(hidden, indices));
  }
  if (auto indices = hidden_indices(rows, first_token); !indices.empty()) {
    output.hidden = take_rows(hidden, indices);
  }
  output.effects.push_back(hidden);
  // The own kernels write in place while hidden is evaluated; the reference's writes are new
  // arrays.
  if (!context_.reference()) return output;
  for (const auto& storage : storage_) {
    output.effects.push_back(storage.keys);
    output.effects.push_back(storage.values);
  }
  for (const auto& row : rows) {
    for (const auto& slot : row.sequence->slots()) {
      output.effects.push_back(slot.tail());
      output.effects.push_back(slot.state());
    }
  }
  return output;
}

Result<PassOutput> PackedModel::forward(const Pass& pass) {
  SLUICE_TRY_STATUS(check(pass));
  for (size_t i = 0; i < pass.rows.size(); ++i) {
    const auto& row = pass.rows[i];
    auto status = row.sequence->begin_pass(row.count, row.settlement == Settlement::kSettled);
    if (status.ok()) continue;
    for (size_t j = 0; j < i; ++j) pass.rows[j].sequence->abandon_pass();
    return status.error();
  }
  if (!context_.reference() || pass.rows.size() == 1) return run(pass.tokens, pass.rows);

  // The reference runs every row alone, so that no neighbour moves a bit, and evaluates it before
  // the next: the storage updates of two rows in one graph would each copy the whole pool.
  std::vector<mx::array> logits, hidden;
  for (const auto& row : pass.rows) {
    const auto begin = pass.tokens.begin() + row.first_token;
    auto output = run({begin, begin + row.count}, {&row, 1});
    evaluate(output);
    if (output.logits) logits.push_back(*output.logits);
    if (output.hidden) hidden.push_back(*output.hidden);
  }
  return PassOutput{join(logits), join(hidden), {}};
}

Status PackedModel::commit(std::span<const Row> rows, std::span<const int> keep) {
  if (rows.size() != keep.size()) {
    return make_error(ErrorCode::kInvalidArgument,
                      "commit of {} rows with {} keeps; there must be one for each row",
                      rows.size(),
                      keep.size());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const int pending = rows[i].sequence->pending();
    const bool settled = rows[i].settlement == Settlement::kSettled;
    if (pending != rows[i].count || keep[i] < 0 || keep[i] > pending ||
        (settled && keep[i] != pending)) {
      return make_error(ErrorCode::kInvalidArgument,
                        "commit keeps {} of row {}, a {} row of {} tokens whose sequence has {} "
                        "pending; settled rows keep all, tentative rows 0 to all",
                        keep[i],
                        i,
                        settled ? "settled" : "tentative",
                        rows[i].count,
                        pending);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) rows[i].sequence->commit(keep[i]).or_throw();
  return {};
}

}  // namespace sluice::models
