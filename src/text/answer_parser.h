// What a model writes, taken apart: thoughts, answer, tool calls. The seam where each family's
// markers live; what is above sees parts and no markers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::text {

// Text of the answer, or of what the model thinks aloud before it.
struct TextPart {
  bool reasoning = false;
  std::string text;
};

// A part of a tool call. The first part of an index has id and name; `arguments` is the next
// fragment of the JSON text of its arguments. Indices count up from 0.
struct ToolCallPart {
  int index = 0;
  std::string id;
  std::string name;
  std::string arguments;
};

using AnswerPart = std::variant<TextPart, ToolCallPart>;

// Of one answer; for one thread at a time. The parts, put together, depend on the text alone and
// not on how it was cut. Any text is an answer: what is no whole marker is text.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;

  // Appends what is certain by now. `text`: whole UTF-8 characters.
  virtual void push(std::string_view text, std::vector<AnswerPart>& parts) = 0;
  // Appends what was held back: the answer is over.
  virtual void finish(std::vector<AnswerPart>& parts) = 0;

  // Whether what comes next belongs to the thoughts.
  virtual bool in_reasoning() const = 0;
};

// Everything is text of the answer.
class PlainParser : public AnswerParser {
 public:
  void push(std::string_view text, std::vector<AnswerPart>& parts) override;
  void finish(std::vector<AnswerPart>&) override {}
  bool in_reasoning() const override { return false; }
};

// Thoughts between <think> and </think> (Qwen 3 and 3.5, DeepSeek R1, SmolLM3 and kin) before the
// answer. They begin with the answer's first text or have begun in the prompt; a marker anywhere
// else is text. White space around both parts, where the markers' lines end, is dropped.
class ThinkParser : public AnswerParser {
 public:
  // begun: the prompt ends in an open <think>.
  explicit ThinkParser(bool begun) : state_(begun ? State::kThoughtStart : State::kStart) {}

  void push(std::string_view text, std::vector<AnswerPart>& parts) override;
  void finish(std::vector<AnswerPart>& parts) override;
  bool in_reasoning() const override {
    return state_ == State::kThoughtStart || state_ == State::kThought;
  }

 private:
  enum class State {
    kStart,         // nothing but white space and the beginning of <think>, if that
    kThoughtStart,  // behind <think>, no text yet
    kThought,
    kAnswerStart,  // behind </think>, no text yet
    kAnswer,
  };
  bool advance(std::vector<AnswerPart>& parts);

  State state_;
  std::string held_;
};

// Which parser a model's answers want, seen from its chat template: thoughts if the template knows
// them. `prompt` is what the template made, generation prompt included.
std::unique_ptr<AnswerParser> make_answer_parser(std::string_view template_source,
                                                 std::string_view prompt);

}  // namespace sluice::text
