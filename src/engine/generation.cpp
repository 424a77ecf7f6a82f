#include "engine/generation.h"

#include <algorithm>
#include <chrono>

#include "tensor/mx.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

const char* finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

std::vector<int> prefill_cuts(int tokens, int chunk, Mode mode) {
  std::vector<int> cuts;
  const int alone = mode == Mode::kReference ? 1 : 0;
  for (int rest = tokens - alone; rest > 0; rest -= chunk) cuts.push_back(std::min(rest, chunk));
  if (alone && tokens > 0) cuts.push_back(1);
  return cuts;
}

Status Generation::pass(std::span<const int32_t> tokens, bool want_logits) {
  models::Pass pass;
  pass.tokens.assign(tokens.begin(), tokens.end());
  models::Row row;
  row.sequence = sequence_.state.get();
  row.count = static_cast<int>(tokens.size());
  row.first_position = sequence_.state->length();
  row.logits = want_logits ? models::LogitsWanted::kLast : models::LogitsWanted::kNone;
  pass.rows.push_back(row);

  SLUICE_TRY(auto output, model_.forward(pass));
  models::evaluate(output);
  if (want_logits) {
    auto logits = mx::contiguous(mx::astype(*output.logits, mx::float32));
    mx::eval(logits);
    logits_.assign(logits.data<float>(), logits.data<float>() + logits.size());
  }
  const int keep[] = {row.count};
  SLUICE_TRY_STATUS(model_.commit(pass.rows, keep));
  sequence_.tokens.insert(sequence_.tokens.end(), tokens.begin(), tokens.end());
  return {};
}

Result<bool> Generation::prefill() {
  for (size_t i = 0; i < plan_.cuts.size(); ++i) {
    if (cancelled()) return false;
    const auto tokens = plan_.prompt.subspan(sequence_.tokens.size(), plan_.cuts[i]);
    SLUICE_TRY_STATUS(pass(tokens, i + 1 == plan_.cuts.size()));
  }
  return true;
}

Result<sampling::Draw> Generation::draw() {
  sampling::DrawInputs inputs;
  inputs.logits = logits_;
  inputs.history = {plan_.prompt, result_.tokens};
  inputs.prompt_index = plan_.prompt_index;
  inputs.choice_index = plan_.choice_index;
  if (static_cast<int>(result_.tokens.size()) < plan_.min_tokens) inputs.banned = plan_.banned_ids;
  return sampler_.draw(plan_.sampling, inputs);
}

Status Generation::decode(const TokenCallback& on_token) {
  for (;;) {
    SLUICE_TRY(auto drawn, draw());
    TokenEvent event;
    event.token = drawn.token;
    event.index = static_cast<int>(result_.tokens.size());
    event.stop_token = contains(plan_.stop_ids, drawn.token);
    event.logprob = drawn.logprob;
    event.top = drawn.top;
    result_.tokens.push_back(drawn.token);
    const bool wants_more = !on_token || on_token(event);

    if (event.stop_token) result_.stop_token = drawn.token;
    if (event.stop_token || !wants_more) {
      result_.finish_reason = FinishReason::kStop;
      return {};
    }
    if (static_cast<int>(result_.tokens.size()) >= plan_.max_tokens) {
      result_.finish_reason = FinishReason::kLength;
      return {};
    }
    if (cancelled()) {
      result_.finish_reason = FinishReason::kCancelled;
      return {};
    }
    SLUICE_TRY_STATUS(pass({&drawn.token, 1}, true));
  }
}

Result<GenerateResult> Generation::run(const TokenCallback& on_token) {
  result_.seed = plan_.sampling.seed;
  result_.sampling = plan_.sampling;
  result_.usage.prompt_tokens = static_cast<int>(plan_.prompt.size());
  result_.usage.cached_tokens = static_cast<int>(sequence_.tokens.size());
  const auto start = Clock::now();
  SLUICE_TRY(const bool complete, prefill());
  result_.timings.prefill_seconds = seconds_since(start);
  if (!complete) {
    result_.finish_reason = FinishReason::kCancelled;
    return std::move(result_);
  }
  const auto first = Clock::now();
  SLUICE_TRY_STATUS(decode(on_token));
  result_.timings.decode_seconds = seconds_since(first);
  result_.usage.completion_tokens = static_cast<int>(result_.tokens.size());
  return std::move(result_);
}

}  // namespace sluice::engine
