// How one call of the own CPU attention kernel is cut into work. Everything here is about speed:
// the kernel gives the same bits however a call is cut (attention_kernels.h).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"

namespace sluice::kernels {

// Consecutive tokens of one row that lie in one page.
struct PageWrite {
  int32_t page = 0;
  int slot = 0;         // of the first token in the page
  int first_token = 0;  // in the pass
  int count = 0;
};

// A block of the kernel: consecutive queries of a row x consecutive heads of one kv head's group.
struct AttentionUnit {
  int row = 0;
  int kv_head = 0;
  int first_query = 0;  // within the row
  int queries = 0;
  int first_head = 0;  // within the pass's heads
  int heads = 0;
  int tiles = 0;
  int64_t partials = -1;  // offset into the scratch if its tiles are tasks of their own
};

struct AttentionTask {
  int32_t unit = 0;
  int32_t tile = -1;  // -1: all of the unit
};

struct AttentionShape {
  int heads = 0;
  int kv_heads = 0;
  int key_dim = 0;
  int value_dim = 0;
};

struct AttentionPlan {
  AttentionPlan(std::vector<AttentionRow> rows, const AttentionShape& shape, int threads);

  std::vector<AttentionRow> rows;
  AttentionShape shape;
  std::vector<PageWrite> writes;
  std::vector<AttentionUnit> units;
  std::vector<AttentionTask> tasks;
  std::vector<int32_t> split_units;  // those whose partials must be merged after the tasks
  int64_t partial_floats = 0;        // scratch for all partials

 private:
  void add_writes(const AttentionRow& row);
  void add_units(int row_index);
  void add_tasks(int threads);
};

}  // namespace sluice::kernels
