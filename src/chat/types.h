// What a front end (HTTP, CLI, bench) asks of a model and what it gets back, in words that belong
// to no wire protocol: a ChatRequest goes in, a stream of ChatEvents comes out. No MLX, no HTTP.
//
// Plain values without invariants of their own: whoever makes a ChatRequest from outside data has
// checked its JSON shapes; the service checks what needs the model (lengths, vocabulary, template).
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace sluice::chat {

// Keeps the order of keys: templates print tools and arguments as the client wrote them, and the
// model sees that text. Looking up a key is linear, so outside data must have its object sizes
// limited before it is parsed into one.
using Json = nlohmann::ordered_json;

// A conversation for the model's chat template.
struct Messages {
  // Array of objects with "role" (system, user, assistant or tool), "content" (string or null) and,
  // where the role has them, "name", "tool_calls", "tool_call_id", "reasoning_content". Not empty.
  Json messages = Json::array();
  // Array of {"type": "function", "function": {...}}; empty: the template sees no tools.
  Json tools = Json::array();
  // Object: further variables of the template, such as {"enable_thinking": false}.
  Json template_kwargs = Json::object();
};

// A prompt as the model reads it: no template. A string is tokenized with special tokens
// recognized and, where the model has one, the begin token put in front; ids are taken as they are.
using Prompt = std::variant<Messages, std::string, std::vector<int32_t>>;

// Unset: the model's own default (its generation_config, else neutral). sampling/params.h has the
// meaning and range of each, which the service checks.
struct SamplingOverrides {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<int> top_k;  // 0: off
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int> penalty_window;     // tokens; -1: all
  std::optional<uint64_t> seed;          // unset: a fresh one
  std::map<int32_t, double> logit_bias;  // token id -> bias added to its logit
};

struct ChatRequest {
  std::string id;     // of the request, for logs; need not be unique
  std::string model;  // empty: the service's default model
  Prompt prompt;
  // Which of several prompts and choices of one API call this is: with the seed they select the
  // random numbers, so that choices of one call differ and repeat.
  int prompt_index = 0;
  int choice_index = 0;

  SamplingOverrides sampling;
  // How many of the most likely tokens to report with each token; 0: the drawn one alone; unset:
  // no log-probabilities.
  std::optional<int> logprobs;

  std::optional<int> max_tokens;  // >= 1; unset: as many as the context has room for
  int min_tokens = 0;             // end tokens and stop strings do not end the text before it
  bool ignore_eos = false;        // go on past the model's end tokens
  std::vector<std::string> stop;  // not empty strings; the text ends before the first one found
};

enum class Channel {
  kContent,    // the answer
  kReasoning,  // what the model thinks aloud before it
};

// A token as text and its natural-log probability. `bytes` may be a part of a UTF-8 character.
struct TokenLogprob {
  std::string bytes;
  double logprob = 0;
};

// One drawn token and the most likely ones at its place, best first.
struct DrawnLogprob {
  TokenLogprob token;
  std::vector<TokenLogprob> top;
};

// More text of one channel: whole UTF-8 characters. `logprobs` are of the tokens whose text this
// is; a token without text of its own (held back or empty) may come with an empty `text`.
struct TextDelta {
  Channel channel = Channel::kContent;
  std::string text;
  std::vector<DrawnLogprob> logprobs;
};

// A part of a tool call. The first delta of an index has id and name; `arguments` is the next
// fragment of the JSON text of its arguments. Indices count up from 0.
struct ToolCallDelta {
  int index = 0;
  std::string id;
  std::string name;
  std::string arguments;
};

// How much of the prompt has been computed, in tokens. Never after the first text.
struct PrefillProgress {
  int done = 0;
  int total = 0;
};

enum class FinishReason {
  kStop,       // end token or stop string
  kLength,     // max_tokens, or the context is full
  kToolCalls,  // the answer ends in tool calls
};

struct Usage {
  int prompt_tokens = 0;
  int cached_tokens = 0;      // of prompt_tokens: not computed again
  int completion_tokens = 0;  // drawn tokens, the end token included
  int reasoning_tokens = 0;   // of completion_tokens
};

// The regular end.
struct Finished {
  FinishReason reason = FinishReason::kStop;
  Usage usage;
};

enum class FailureKind {
  kInvalidRequest,  // the request can never succeed as it is
  kUnknownModel,
  kPromptTooLong,  // the message names both token counts
  kQueueFull,      // the message names both request counts; later it may succeed
  kShuttingDown,
  kSlowConsumer,  // the consumer left its events lying until the buffer was full
  kCancelled,     // the consumer asked to stop
  kInternal,      // a fault on our side
};

// Why a request was refused or broke off.
struct Failure {
  FailureKind kind = FailureKind::kInternal;
  std::string field;    // the field of the request at fault: "messages", "logit_bias"; may be empty
  std::string message;  // what is wrong and how to mend it, for a person
};

// Finished and Failure end the stream: nothing follows them.
using ChatEvent = std::variant<TextDelta, ToolCallDelta, PrefillProgress, Finished, Failure>;

inline bool is_final(const ChatEvent& event) {
  return std::holds_alternative<Finished>(event) || std::holds_alternative<Failure>(event);
}

}  // namespace sluice::chat
