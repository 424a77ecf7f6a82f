// Which rows run in which pass. Internal to engine/; engine thread only.
//
// A step gives every running row its part of one packed pass: one token to rows that decode, a
// piece of what is uncomputed to rows that prefill, in order of arrival, under a budget of tokens.
// Then each row that is up to date draws its next token. In fast mode no bit of a row depends on
// any of these choices (the exactness contract), so the scheduler is free to make them for speed.
//
// When the cache is full, idle sequences go first, the oldest first; then the row that was admitted
// last is preempted: it gives up what was computed, keeps its tokens, and waits in front.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "engine/idle_sequences.h"
#include "engine/row.h"
#include "models/model.h"

namespace sluice::engine {

struct SchedulerOptions {
  Mode mode = Mode::kFast;
  int max_rows = 1;           // rows that share a pass, >= 1
  bool keep_prefixes = true;  // ended sequences stay idle in the cache
  // Recurrent state that idle sequences may hold beside their pages.
  size_t idle_slot_bytes = size_t{512} << 20;
};

class Scheduler {
 public:
  // on_end is called once for every row that was added, just before its sink hears of the end.
  Scheduler(models::Model& model,
            SchedulerOptions options,
            std::function<void(const Sink&)> on_end);

  void add(std::unique_ptr<Row> row) { waiting_.push_back(std::move(row)); }

  // Ends what was cancelled, admits what fits, runs one pass. True: there is more to do.
  bool step();

  // Ends every row with this error and gives all pages back.
  void end_all(const Error& error);

  // Rows that a step may advance. Any thread.
  int running() const { return num_running_; }
  // Times a row gave its pages up. Any thread.
  int64_t preemptions() const { return preemptions_; }

 private:
  using Rows = std::list<std::unique_ptr<Row>>;
  // A row's tokens in the coming pass.
  struct Part {
    Row* row = nullptr;
    int count = 0;
  };

  void end_cancelled();
  void admit();
  bool fits(const Row& row) const;
  std::vector<Part> plan_pass();
  // Pages for `count` more tokens of the row, beside those that `parts` will take.
  bool make_room(const Row& row, int count, const std::vector<Part>& parts);
  int free_pages() const;
  void preempt_last(const Row& keep);
  void run_pass(const std::vector<Part>& parts);
  Status forward(const std::vector<Part>& parts, std::vector<float>& logits);
  void recover(const std::vector<Part>& parts, const Error& error);
  void advance(Row& row, std::span<const float> logits);
  void finish(Row& row, FinishReason reason);
  void fail(Row& row, const Error& error);
  // Takes the row out of the running ones.
  std::unique_ptr<Row> remove(Row& row);
  void end(std::unique_ptr<Row> row, Result<GenerateResult> result);

  models::Model& model_;
  const SchedulerOptions options_;
  const std::function<void(const Sink&)> on_end_;
  const std::unique_ptr<cache::SequenceState> empty_;  // to ask for page counts
  const int total_pages_;

  sampling::Sampler sampler_;
  IdleSequences idle_;
  Rows waiting_;  // in order of arrival, preempted ones in front
  Rows running_;  // in order of admission
  std::vector<float> logits_;
  std::atomic<int> num_running_{0};
  std::atomic<int64_t> preemptions_{0};
};

}  // namespace sluice::engine
