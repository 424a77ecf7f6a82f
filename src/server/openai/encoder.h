// ChatEvents in, bytes of the OpenAI API out: pure state machines without clock, socket or thread.
//
// A ChoiceEncoder turns the events of one choice into the choice objects of stream chunks. The
// stream writes these chunks as server-sent events; the collected response is the fold of the same
// chunks. So both say the same by construction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/types.h"
#include "server/openai/error.h"
#include "server/openai/request.h"

namespace sluice::server {

// What all chunks of one response share.
struct ResponseHead {
  Api api = Api::kChat;
  std::string id;       // "chatcmpl-..." or "cmpl-..."
  int64_t created = 0;  // Unix time in seconds
  std::string model;
  std::string fingerprint;  // "system_fingerprint"; left out if empty
  int num_choices = 1;      // >= 1
  bool logprobs = false;    // they were asked for
  bool include_usage = false;
};

class ChoiceEncoder {
 public:
  ChoiceEncoder(Api api, int index, bool logprobs)
      : api_(api), index_(index), logprobs_(logprobs) {}

  // The choice object of the chunk that `event` makes, if it makes one: progress and text deltas
  // without text make none (their log-probabilities wait for the next chunk). Not for a Failure.
  std::optional<chat::Json> on_event(const chat::ChatEvent& event);

 private:
  std::optional<chat::Json> on_text(const chat::TextDelta& event);
  chat::Json on_tool_call(const chat::ToolCallDelta& event);
  chat::Json on_finish(const chat::Finished& event);
  chat::Json chat_choice(chat::Json delta, chat::Json finish_reason);
  chat::Json completion_choice(std::string text, chat::Json finish_reason);
  chat::Json take_logprobs();

  const Api api_;
  const int index_;
  const bool logprobs_;
  bool role_sent_ = false;
  int64_t offset_ = 0;  // characters of the tokens so far: "text_offset" of completions
  std::vector<chat::DrawnLogprob> waiting_;
};

// Server-sent events. The first chunk of a choice has the role; no chunk has an empty content; the
// last one has the finish reason; then, if asked for, a chunk with the usage of all choices, then
// "[DONE]". A Failure makes an error event, and nothing follows it, not even "[DONE]".
class StreamEncoder {
 public:
  explicit StreamEncoder(ResponseHead head);

  // Appends to `out` what the event makes. Nothing after done().
  void on_event(int choice, const chat::ChatEvent& event, std::string& out);

  // A comment, which clients skip: keeps proxies and clients from giving up on a silent stream.
  static void keepalive(std::string& out) { out += ": keepalive\n\n"; }

  bool done() const { return done_; }
  const std::optional<chat::Failure>& failure() const { return failure_; }
  const chat::Usage& usage() const { return usage_; }

 private:
  void put_chunk(chat::Json choices, std::optional<chat::Json> usage, std::string& out) const;

  const ResponseHead head_;
  std::vector<ChoiceEncoder> choices_;
  int open_choices_;
  chat::Usage usage_;
  bool done_ = false;
  std::optional<chat::Failure> failure_;
};

// The whole response in one JSON object.
class CollectEncoder {
 public:
  explicit CollectEncoder(ResponseHead head);

  void on_event(int choice, const chat::ChatEvent& event);

  // Every choice has ended, or one has failed.
  bool done() const { return open_choices_ == 0 || failure_.has_value(); }
  const std::optional<chat::Failure>& failure() const { return failure_; }
  const chat::Usage& usage() const { return usage_; }

  // The body. Only when done() and not failed.
  std::string body() const;

 private:
  const ResponseHead head_;
  std::vector<ChoiceEncoder> encoders_;
  std::vector<chat::Json> folded_;  // the choice objects so far
  int open_choices_;
  chat::Usage usage_;
  std::optional<chat::Failure> failure_;
};

}  // namespace sluice::server
