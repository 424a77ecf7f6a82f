#include "chat/null_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace sluice::chat {
namespace {

std::string prompt_text(const Prompt& prompt) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    std::string text;
    for (int32_t id : *ids) text += fmt::format("{:03} ", id);
    return text;
  }
  const auto& last = std::get<Messages>(prompt).messages.back();
  const auto content = last.find("content");
  return content != last.end() && content->is_string() ? content->get<std::string>() : "";
}

DrawnLogprob logprob_of(const std::string& piece, int k, int top) {
  DrawnLogprob drawn{{piece, -(k % 8) / 8.0}, {}};
  for (int i = 0; i < top; ++i) {
    drawn.top.push_back({i == 0 ? piece : fmt::format("alt{}", i), drawn.token.logprob - i});
  }
  return drawn;
}

// Cuts the answer before the first stop string that ends after `min_pieces` pieces. True if one was
// found.
bool cut_at_stop(std::vector<std::string>& pieces,
                 const std::vector<std::string>& stops,
                 int min_pieces) {
  std::string text;
  size_t from = 0;
  for (size_t k = 0; k < pieces.size(); ++k) {
    if (static_cast<int>(k) < min_pieces) from += pieces[k].size();
    text += pieces[k];
  }
  size_t cut = std::string::npos;
  for (const auto& stop : stops) cut = std::min(cut, text.find(stop, from));
  if (cut == std::string::npos) return false;
  size_t size = 0;
  for (size_t k = 0; k < pieces.size(); ++k) {
    if (size + pieces[k].size() > cut) {
      pieces[k].resize(cut - size);
      pieces.resize(pieces[k].empty() ? k : k + 1);
      return true;
    }
    size += pieces[k].size();
  }
  return true;
}

}  // namespace

std::vector<std::string> null_tokenize(const std::string& text) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(begin + kPieceBytes, text.size());
    // Back to the start of a character, unless that leaves nothing (text that is not UTF-8).
    size_t border = end;
    while (border > begin && border < text.size() &&
           (static_cast<unsigned char>(text[border]) & 0xC0) == 0x80) {
      --border;
    }
    if (border > begin) end = border;
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

NullService::NullService(NullServiceOptions options) : options_(std::move(options)) {
  SLUICE_CHECK(options_.max_running >= 1 && options_.queue_limit >= 0 &&
                   options_.prefill_tokens_per_step >= 1 && options_.tokens_per_second >= 0,
               "null service: limits out of range");
  thread_ = std::thread([this] { run(); });
}

NullService::~NullService() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  for (auto* rows : {&running_, &queued_}) {
    for (auto& row : *rows) {
      row.channel->push(Failure{FailureKind::kShuttingDown, "", "the service is shutting down"});
    }
  }
}

Submission NullService::submit(ChatRequest request) {
  if (!request.model.empty() && request.model != options_.model.id) {
    return Failure{
        FailureKind::kUnknownModel,
        "model",
        fmt::format(
            "there is no model '{}'; this server has '{}'", request.model, options_.model.id)};
  }
  const auto prompt = null_tokenize(prompt_text(request.prompt));
  const int limit = options_.model.context_length;
  if (static_cast<int>(prompt.size()) >= limit) {
    return Failure{FailureKind::kPromptTooLong,
                   std::holds_alternative<Messages>(request.prompt) ? "messages" : "prompt",
                   fmt::format("the prompt has {} tokens, but the context holds {} with at least "
                               "one for the answer; shorten it",
                               prompt.size(),
                               limit)};
  }
  Row row{std::make_shared<EventChannel>(options_.channel_capacity), {}, 0};
  auto script = options_.script ? options_.script(request) : std::nullopt;
  row.script = script ? std::move(*script) : plan(request, prompt);
  SLUICE_CHECK(!row.script.empty() && is_final(row.script.back()), "a script without an end");
  auto generation = std::make_shared<Generation>(row.channel);
  {
    std::lock_guard lock(mutex_);
    if (!broken_.empty()) return Failure{FailureKind::kInternal, "", broken_};
    const auto waiting = static_cast<int>(queued_.size() + running_.size());
    if (waiting >= options_.max_running + options_.queue_limit) {
      return Failure{FailureKind::kQueueFull,
                     "",
                     fmt::format("the queue is full: {} requests are waiting and {} may; try again "
                                 "later",
                                 waiting - static_cast<int>(running_.size()),
                                 options_.queue_limit)};
    }
    queued_.push_back(std::move(row));
    ++counts_.accepted;
  }
  wake_.notify_all();
  return generation;
}

NullScript NullService::plan(const ChatRequest& request,
                             const std::vector<std::string>& prompt) const {
  const auto prompt_tokens = static_cast<int>(prompt.size());
  const int limit = std::min(request.max_tokens.value_or(options_.default_max_tokens),
                             options_.model.context_length - prompt_tokens);
  std::vector<std::string> pieces(prompt);
  pieces.resize(std::min<size_t>(pieces.size(), static_cast<size_t>(limit)));
  while (request.ignore_eos && !prompt.empty() && static_cast<int>(pieces.size()) < limit) {
    pieces.push_back(prompt[pieces.size() % prompt.size()]);
  }
  const bool stopped = cut_at_stop(pieces, request.stop, request.min_tokens);
  const bool ended = stopped || static_cast<int>(pieces.size()) < limit;

  NullScript script;
  for (int done = options_.prefill_tokens_per_step; done < prompt_tokens;
       done += options_.prefill_tokens_per_step) {
    script.push_back(PrefillProgress{done, prompt_tokens});
  }
  for (size_t k = 0; k < pieces.size(); ++k) {
    TextDelta delta{Channel::kContent, pieces[k], {}};
    if (request.logprobs) {
      delta.logprobs.push_back(logprob_of(pieces[k], static_cast<int>(k), *request.logprobs));
    }
    script.push_back(std::move(delta));
  }
  const Usage usage{prompt_tokens, 0, static_cast<int>(pieces.size()), 0};
  script.push_back(Finished{ended ? FinishReason::kStop : FinishReason::kLength, usage});
  return script;
}

void NullService::run() {
  const auto pause =
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(
          options_.tokens_per_second > 0 ? 1 / options_.tokens_per_second : 0));
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (running_.empty() && queued_.empty()) {
      wake_.wait(lock);
      continue;
    }
    const auto next_step = std::chrono::steady_clock::now() + pause;
    step_locked();
    if (pause.count() > 0) {
      wake_.wait_until(lock, next_step, [this] { return stopping_; });
    } else {
      // Lets submit() and health() in between steps.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }
}

void NullService::step_locked() {
  // Queued rows whose consumer has left must not wait for a place to be seen.
  for (auto row = queued_.begin(); row != queued_.end();) {
    if (row->channel->is_cancelled()) {
      ++counts_.cancelled;
      row = queued_.erase(row);
    } else {
      ++row;
    }
  }
  while (!queued_.empty() && static_cast<int>(running_.size()) < options_.max_running) {
    running_.splice(running_.end(), queued_, queued_.begin());
  }
  for (auto row = running_.begin(); row != running_.end();) {
    row = advance_locked(*row) ? std::next(row) : running_.erase(row);
  }
}

bool NullService::advance_locked(Row& row) {
  if (!broken_.empty()) {
    row.channel->push(Failure{FailureKind::kInternal, "", broken_});
    ++counts_.finished;
    return false;
  }
  if (row.channel->is_cancelled()) {
    ++counts_.cancelled;
    return false;
  }
  ChatEvent& event = row.script[row.next++];
  const bool final = is_final(event);
  if (std::holds_alternative<TextDelta>(event)) ++counts_.tokens;
  const bool alive = row.channel->push(std::move(event));
  if (!alive) {
    ++counts_.cancelled;
  } else if (final) {
    ++counts_.finished;
  }
  return alive && !final;
}

Health NullService::health() const {
  std::lock_guard lock(mutex_);
  return {broken_.empty(),
          broken_,
          static_cast<int>(running_.size()),
          static_cast<int>(queued_.size()),
          options_.queue_limit};
}

NullService::Counts NullService::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

void NullService::break_down(std::string reason) {
  std::lock_guard lock(mutex_);
  broken_ = std::move(reason);
}

}  // namespace sluice::chat
