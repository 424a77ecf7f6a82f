#include "server/openai/generate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/openai/encoder.h"
#include "server/request_id.h"

namespace sluice::server {
namespace {

using chat::ChatEvent;
using chat::Failure;
using chat::FailureKind;

// The generations of one response, one for each choice.
class Choices {
 public:
  // All of them or none: what was accepted before a refusal is cancelled.
  std::optional<Failure> submit(chat::Service& service,
                                std::vector<chat::ChatRequest> requests,
                                const std::string& id) {
    for (auto& request : requests) {
      request.id = id;
      auto submission = service.submit(std::move(request));
      if (auto* failure = std::get_if<Failure>(&submission)) {
        generations_.clear();
        return std::move(*failure);
      }
      generations_.push_back(std::get<std::shared_ptr<chat::Generation>>(std::move(submission)));
    }
    return std::nullopt;
  }

  void set_notify(const std::function<void()>& notify) {
    for (auto& generation : generations_) generation->set_notify(notify);
  }

  void cancel() {
    for (auto& generation : generations_) generation->cancel();
  }

  // Takes up to `limit` waiting events of each choice; true if there may be more.
  template <class Action>
  bool drain(size_t limit, Action action) {
    bool more = false;
    for (size_t i = 0; i < generations_.size(); ++i) {
      size_t taken = 0;
      while (taken < limit) {
        const auto event = generations_[i]->poll();
        if (!event) break;
        action(static_cast<int>(i), *event);
        ++taken;
      }
      more = more || taken == limit;
    }
    return more;
  }

 private:
  std::vector<std::shared_ptr<chat::Generation>> generations_;
};

// Events of a choice that are encoded before the bytes are sent: bounds the size of one write.
constexpr size_t kEventsPerWrite = 256;

ResponseHead make_head(const ApiRequest& request, const std::vector<chat::ModelInfo>& models) {
  const auto& first = request.requests.front();
  auto model = std::find_if(
      models.begin(), models.end(), [&](const auto& m) { return m.id == first.model; });
  if (model == models.end()) model = models.begin();
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ResponseHead head;
  head.api = request.api;
  head.id = random_id(request.api == Api::kChat ? "chatcmpl-" : "cmpl-");
  head.created = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  head.model = model->id;
  head.fingerprint = model->fingerprint;
  head.num_choices = static_cast<int>(request.requests.size());
  head.logprobs = first.logprobs.has_value();
  head.include_usage = request.include_usage;
  return head;
}

void note_event(RequestLog& log, const ChatEvent& event) {
  if (std::holds_alternative<chat::TextDelta>(event) && !log.first_token) {
    log.first_token = RequestLog::Clock::now();
  }
}

void note_end(RequestLog& log, const chat::Usage& usage, const std::optional<Failure>& failure) {
  log.prompt_tokens = usage.prompt_tokens;
  log.completion_tokens = usage.completion_tokens;
  if (!failure) return;
  log.outcome = failure->kind == FailureKind::kShuttingDown ? "aborted" : "failed";
  log.detail = failure->message;
}

const Failure& shutting_down() {
  static const Failure failure{
      FailureKind::kShuttingDown, "", "the server is shutting down; the answer is incomplete"};
  return failure;
}

// A function of its own: g++ 12 cannot compile braces like these inside a coroutine.
HttpResponse stream_head() {
  HttpResponse head;
  head.content_type = "text/event-stream; charset=utf-8";
  // nginx would hold the events back without the second one.
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

HttpResponse ok_response(std::string body) {
  HttpResponse response;
  response.body = std::move(body);
  return response;
}

// As send_error(), for a request that was accepted: its outcome has been noted already.
asio::awaitable<void> send_failure(Exchange& exchange, const Failure& failure) {
  const std::string outcome = exchange.log().outcome;
  co_await send_error(exchange, api_error(failure));
  exchange.log().outcome = outcome;
}

asio::awaitable<void> collect(Exchange& exchange, Choices& choices, ResponseHead head) {
  CollectEncoder encoder(std::move(head));
  while (!encoder.done()) {
    const bool more = choices.drain(kEventsPerWrite, [&](int choice, const ChatEvent& event) {
      note_event(exchange.log(), event);
      encoder.on_event(choice, event);
    });
    if (encoder.done()) break;
    // With more to take, a look at the client and no sleep.
    const auto wake =
        co_await exchange.wait(more ? std::chrono::milliseconds(0) : std::chrono::hours(1));
    if (wake == Wake::kGone) co_return;
    if (wake == Wake::kAbort) encoder.on_event(0, shutting_down());
  }
  note_end(exchange.log(), encoder.usage(), encoder.failure());
  if (encoder.failure()) {
    choices.cancel();
    co_await send_failure(exchange, *encoder.failure());
  } else {
    co_await exchange.send(ok_response(encoder.body()));
  }
}

// The head of the response waits for the first bytes, so that a request that fails at once still
// gets its status.
asio::awaitable<void> stream(Exchange& exchange,
                             Choices& choices,
                             ResponseHead head,
                             std::chrono::milliseconds keepalive) {
  StreamEncoder encoder(std::move(head));
  std::string out;
  while (true) {
    bool early = false;
    bool more = choices.drain(kEventsPerWrite, [&](int choice, const ChatEvent& event) {
      note_event(exchange.log(), event);
      early = early || (out.empty() && std::holds_alternative<Failure>(event));
      encoder.on_event(choice, event, out);
    });
    note_end(exchange.log(), encoder.usage(), encoder.failure());
    if (early && !exchange.streaming()) {
      co_await send_failure(exchange, *encoder.failure());
      co_return;
    }
    if (!out.empty()) {
      if (!exchange.streaming()) co_await exchange.begin_stream(stream_head());
      co_await exchange.write(out);
      out.clear();
      more = true;  // events may have come during the write
    }
    if (encoder.done()) break;
    const auto wake = co_await exchange.wait(more ? std::chrono::milliseconds(0) : keepalive);
    if (wake == Wake::kGone) co_return;
    if (wake == Wake::kAbort) {
      choices.cancel();
      if (!exchange.streaming()) {
        exchange.log().outcome = "aborted";
        co_await send_failure(exchange, shutting_down());
        co_return;
      }
      encoder.on_event(0, shutting_down(), out);
    }
    if (wake == Wake::kTimeout && !more) StreamEncoder::keepalive(out);
  }
  choices.cancel();
  co_await exchange.end_stream();
}

}  // namespace

asio::awaitable<void> send_error(Exchange& exchange, ApiError error) {
  exchange.log().outcome = error.status >= 500 ? "failed" : "refused";
  exchange.log().detail = error.message;
  co_await exchange.send(error_response(error));
}

asio::awaitable<void> generate(Exchange& exchange,
                               chat::Service& service,
                               const ServerOptions& options,
                               ApiRequest request) {
  ResponseHead head = make_head(request, service.models());
  Choices choices;
  const auto refused = choices.submit(service, std::move(request.requests), exchange.request().id);
  if (refused) {
    co_await send_error(exchange, api_error(*refused));
    co_return;
  }
  choices.set_notify(exchange.waker());
  exchange.on_gone([&choices] { choices.cancel(); });
  if (request.stream) {
    co_await stream(exchange, choices, std::move(head), options.keepalive);
  } else {
    co_await collect(exchange, choices, std::move(head));
  }
}

}  // namespace sluice::server
