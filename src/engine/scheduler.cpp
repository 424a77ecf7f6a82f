#include "engine/scheduler.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "tensor/mx.h"

namespace sluice::engine {
namespace {

// Tokens of one pass. More gains no throughput on CPUs and delays whoever decodes.
constexpr int kPassTokens = 512;
// Tokens of prompts that may share a pass with rows that decode: what they may be slowed down.
constexpr int kPrefillBesideDecode = 128;

// The wall where exceptions of tensor code and of callbacks become errors (design section 4).
template <class Task>
auto guarded(const char* what, Task&& task) -> decltype(task()) {
  try {
    return task();
  } catch (const Exception& e) {
    return e.error();
  } catch (const std::exception& e) {
    return make_error(ErrorCode::kInternal, "{} failed: {}", what, e.what());
  }
}

}  // namespace

Scheduler::Scheduler(models::Model& model,
                     SchedulerOptions options,
                     std::function<void(const Sink&)> on_end)
    : model_(model),
      options_(options),
      on_end_(std::move(on_end)),
      empty_(model.new_sequence()),
      total_pages_(empty_->missing_pages(model.traits().cache_tokens)),
      idle_(options.idle_slot_bytes) {}

bool Scheduler::step() {
  end_cancelled();
  admit();
  const auto parts = plan_pass();
  if (!parts.empty()) {
    run_pass(parts);
  } else if (!running_.empty()) {
    fail(*running_.front(),
         {ErrorCode::kInternal, "the cache has no pages for a request that should fit alone"});
  }
  return !running_.empty() || !waiting_.empty();
}

void Scheduler::end_cancelled() {
  for (auto* rows : {&waiting_, &running_}) {
    for (auto it = rows->begin(); it != rows->end();) {
      auto next = std::next(it);
      if ((*it)->sink().cancelled()) {
        auto row = std::move(*it);
        rows->erase(it);
        auto result = row->result(FinishReason::kCancelled);
        end(std::move(row), std::move(result));
      }
      it = next;
    }
  }
  num_running_ = static_cast<int>(running_.size());
}

bool Scheduler::fits(const Row& row) const {
  // Alone, every row fits: its plan was checked against the whole cache.
  if (running_.empty()) return true;
  // A token more for the row, and a page of headroom for it and each running row.
  const int known = static_cast<int>(row.known().size());
  int wanted = empty_->missing_pages(known + 1) + 1;
  for (const auto& other : running_) {
    wanted += other->state()->missing_pages(other->uncomputed()) + 1;
  }
  return wanted <= free_pages() + idle_.pages();
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < options_.max_rows &&
         fits(*waiting_.front())) {
    auto row = std::move(waiting_.front());
    waiting_.pop_front();
    auto state = row->plan().reuse_prefix ? idle_.take_prefix_of(row->known()) : nullptr;
    row->start(state ? std::move(state) : model_.new_sequence());
    running_.push_back(std::move(row));
  }
  num_running_ = static_cast<int>(running_.size());
}

int Scheduler::free_pages() const {
  int held = idle_.pages();
  for (const auto& row : running_) held += row->pages();
  return total_pages_ - held;
}

void Scheduler::preempt_last(const Row& keep) {
  auto last = std::prev(running_.end());
  if (last->get() == &keep) last = std::prev(last);
  spdlog::debug("the cache is full: a row of {} tokens is put back", (*last)->known().size());
  (*last)->take_state().reset();
  waiting_.splice(waiting_.begin(), running_, last);
  ++preemptions_;
}

bool Scheduler::make_room(const Row& row, int count, const std::vector<Part>& parts) {
  int wanted = row.state()->missing_pages(count);
  for (const auto& part : parts) wanted += part.row->state()->missing_pages(part.count);
  while (wanted > free_pages()) {
    if (idle_.evict_oldest()) continue;
    // Whoever is in the pass already will give pages back one day; a pass must not be empty.
    if (!parts.empty() || running_.size() == 1) return false;
    preempt_last(row);
  }
  return true;
}

std::vector<Scheduler::Part> Scheduler::plan_pass() {
  std::vector<Part> parts;
  std::vector<Row*> order;
  for (const auto& row : running_) {
    if (row->alone()) order = {row.get()};
    if (row->alone()) break;
    order.push_back(row.get());
  }
  std::stable_partition(order.begin(), order.end(), [](Row* row) { return row->wants_one(); });

  int budget = -1;  // of prefill tokens; set at the first row that prefills
  for (auto* row : order) {
    if (!row->state()) continue;  // preempted just now
    int count = 1;
    if (!row->wants_one()) {
      const int chunk = row->plan().prefill_chunk;
      if (budget < 0) {
        budget = parts.empty() ? std::max(kPassTokens, chunk) : kPrefillBesideDecode;
      }
      count = next_prefill_cut(row->uncomputed(), std::min(chunk, budget), options_.mode);
      if (count < 1) break;
      budget -= count;
    }
    if (make_room(*row, count, parts)) parts.push_back({row, count});
  }
  num_running_ = static_cast<int>(running_.size());
  return parts;
}

Status Scheduler::forward(const std::vector<Part>& parts, std::vector<float>& logits) {
  models::Pass pass;
  std::vector<int> keep;
  for (const auto& [request, count] : parts) {
    models::Row row;
    row.sequence = request->state();
    row.first_token = static_cast<int>(pass.tokens.size());
    row.count = count;
    row.first_position = request->computed();
    row.logits =
        count == request->uncomputed() ? models::LogitsWanted::kLast : models::LogitsWanted::kNone;
    const auto from = request->known().begin() + row.first_position;
    pass.tokens.insert(pass.tokens.end(), from, from + count);
    pass.rows.push_back(row);
    keep.push_back(count);
  }
  SLUICE_TRY(auto output, model_.forward(pass));
  models::evaluate(output);
  logits.clear();
  if (output.logits) {
    auto values = mx::contiguous(mx::astype(*output.logits, mx::float32));
    mx::eval(values);
    logits.assign(values.data<float>(), values.data<float>() + values.size());
  }
  return model_.commit(pass.rows, keep);
}

void Scheduler::run_pass(const std::vector<Part>& parts) {
  const auto status = guarded("the model", [&] { return forward(parts, logits_); });
  if (!status.ok()) {
    recover(parts, status.error());
    return;
  }
  const auto vocab = static_cast<size_t>(model_.traits().vocab_size);
  auto rest = std::span<const float>(logits_);
  for (const auto& part : parts) {
    auto& row = *part.row;
    if (row.uncomputed() == 0) {
      row.set_alone(false);
      advance(row, rest.first(vocab));
      rest = rest.subspan(vocab);
    } else {
      row.sink().on_prefill(std::min(row.computed(), row.plan().prompt_tokens),
                            row.plan().prompt_tokens);
    }
  }
}

void Scheduler::recover(const std::vector<Part>& parts, const Error& error) {
  // What the pass wrote is unknown, so its rows start over.
  for (const auto& part : parts) part.row->take_state().reset();
  if (parts.size() == 1) {
    fail(*parts.front().row, error);
    return;
  }
  spdlog::warn(
      "a pass of {} rows failed and is repeated row by row: {}", parts.size(), error.message);
  for (const auto& part : parts) {
    part.row->start(model_.new_sequence());
    part.row->set_alone(true);
  }
}

void Scheduler::advance(Row& row, std::span<const float> logits) {
  const auto done = guarded("the callback", [&] { return row.advance(sampler_, logits); });
  if (!done.ok()) {
    fail(row, done.error());
  } else if (*done) {
    finish(row, row.finish_reason());
  }
}

std::unique_ptr<Row> Scheduler::remove(Row& row) {
  const auto found =
      std::find_if(running_.begin(), running_.end(), [&](auto& r) { return r.get() == &row; });
  auto removed = std::move(*found);
  running_.erase(found);
  num_running_ = static_cast<int>(running_.size());
  return removed;
}

void Scheduler::finish(Row& row, FinishReason reason) {
  auto result = row.result(reason);
  end(remove(row), std::move(result));
}

void Scheduler::fail(Row& row, const Error& error) {
  auto removed = remove(row);
  removed->take_state().reset();
  end(std::move(removed), error);
}

void Scheduler::end(std::unique_ptr<Row> row, Result<GenerateResult> result) {
  if (auto state = row->take_state(); state && options_.keep_prefixes) {
    idle_.add(std::move(state), row->known());
  }
  on_end_(row->sink());
  row->sink().on_end(std::move(result));
}

void Scheduler::end_all(const Error& error) {
  idle_.clear();
  for (auto* rows : {&running_, &waiting_}) {
    while (!rows->empty()) {
      auto row = std::move(rows->front());
      rows->pop_front();
      row->take_state().reset();
      end(std::move(row), error);
    }
  }
  num_running_ = 0;
}

}  // namespace sluice::engine
