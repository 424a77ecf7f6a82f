#include "kernels/attention/attention_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/attention/attention_kernels.h"

namespace sluice::kernels {

static_assert(kPagePositions == kPageSize);

namespace {

// A unit that is more than this part of a thread's share of the work is cut into its tiles.
constexpr int64_t kTasksPerThread = 4;

}  // namespace

AttentionPlan::AttentionPlan(std::vector<AttentionRow> rows_in,
                             const AttentionShape& shape_in,
                             int threads)
    : rows(std::move(rows_in)), shape(shape_in) {
  for (int i = 0; i < static_cast<int>(rows.size()); ++i) {
    add_writes(rows[i]);
    add_units(i);
  }
  add_tasks(threads);
}

void AttentionPlan::add_writes(const AttentionRow& row) {
  const RowSpan& span = row.span;
  for (int done = 0; done < span.count;) {
    const int position = span.first_position + done, slot = position % kPageSize;
    const int count = std::min(kPageSize - slot, span.count - done);
    writes.push_back({row.pages[position / kPageSize], slot, span.first_token + done, count});
    done += count;
  }
}

void AttentionPlan::add_units(int row_index) {
  const RowSpan& span = rows[row_index].span;
  const int group = shape.heads / shape.kv_heads;
  const int max_rows = max_block_rows(shape.key_dim, shape.value_dim);
  const int heads = std::min(group, max_rows), queries = max_rows / heads;
  // The last queries first: they see most, and large pieces of work should not come last.
  const int blocks = (span.count + queries - 1) / queries;
  for (int block = blocks - 1; block >= 0; --block) {
    for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      for (int head = 0; head < group; head += heads) {
        AttentionUnit unit;
        unit.row = row_index;
        unit.kv_head = kv_head;
        unit.first_query = block * queries;
        unit.queries = std::min(queries, span.count - unit.first_query);
        unit.first_head = kv_head * group + head;
        unit.heads = std::min(heads, group - head);
        const int end = span.first_position + unit.first_query + unit.queries;
        unit.tiles = (end + kTilePositions - 1) / kTilePositions;
        units.push_back(unit);
      }
    }
  }
}

void AttentionPlan::add_tasks(int threads) {
  auto cost = [](const AttentionUnit& unit) {
    return int64_t{unit.tiles} * unit.queries * unit.heads;
  };
  int64_t total = 0;
  for (const auto& unit : units) total += cost(unit);
  const int64_t most = total / (kTasksPerThread * threads);
  for (int i = 0; i < static_cast<int>(units.size()); ++i) {
    AttentionUnit& unit = units[i];
    if (threads == 1 || unit.tiles == 1 || cost(unit) <= most) {
      tasks.push_back({i, -1});
      continue;
    }
    unit.partials = partial_floats;
    partial_floats +=
        unit.tiles * kernels::partial_floats(unit.queries * unit.heads, shape.value_dim);
    split_units.push_back(i);
    for (int tile = 0; tile < unit.tiles; ++tile) tasks.push_back({i, tile});
  }
}

}  // namespace sluice::kernels
