#include "text/answer_parser.h"

#include <algorithm>

namespace sluice::text {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kSpace = " \t\r\n";

void put(bool reasoning, std::string text, std::vector<AnswerPart>& parts) {
  if (!text.empty()) parts.push_back(TextPart{reasoning, std::move(text)});
}

// Takes white space off the front; whether something is left.
bool trim_front(std::string& text) {
  text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
  return !text.empty();
}

// How many bytes at the end of `text` may yet become `marker` or white space before it.
size_t open_end(std::string_view text, std::string_view marker) {
  size_t length = std::min(text.size(), marker.size() - 1);
  while (!text.ends_with(marker.substr(0, length))) --length;
  const auto before = text.substr(0, text.size() - length);
  const auto last = before.find_last_not_of(kSpace);
  return text.size() - (last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

void PlainParser::push(std::string_view text, std::vector<AnswerPart>& parts) {
  put(false, std::string(text), parts);
}

void ThinkParser::push(std::string_view text, std::vector<AnswerPart>& parts) {
  held_ += text;
  while (advance(parts)) {
  }
}

// One state's work on held_; true: there is a new state to go on with.
bool ThinkParser::advance(std::vector<AnswerPart>& parts) {
  switch (state_) {
    case State::kStart: {
      const auto first = held_.find_first_not_of(kSpace);
      const auto text =
          first == std::string::npos ? std::string_view() : std::string_view(held_).substr(first);
      if (text.starts_with(kOpen)) {
        held_.erase(0, first + kOpen.size());
        state_ = State::kThoughtStart;
        return true;
      }
      if (kOpen.starts_with(text)) return false;
      state_ = State::kAnswer;  // with its white space: there was no marker
      return true;
    }
    case State::kThoughtStart:
      if (!trim_front(held_)) return false;
      state_ = State::kThought;
      return true;
    case State::kThought: {
      const auto close = held_.find(kClose);
      if (close != std::string::npos) {
        const auto thought = std::string_view(held_).substr(0, close);
        // npos + 1 is 0: nothing but white space.
        put(true, std::string(thought.substr(0, thought.find_last_not_of(kSpace) + 1)), parts);
        held_.erase(0, close + kClose.size());
        state_ = State::kAnswerStart;
        return true;
      }
      const auto ready = held_.size() - open_end(held_, kClose);
      put(true, held_.substr(0, ready), parts);
      held_.erase(0, ready);
      return false;
    }
    case State::kAnswerStart:
      if (!trim_front(held_)) return false;
      state_ = State::kAnswer;
      return true;
    case State::kAnswer:
      put(false, std::move(held_), parts);
      held_.clear();
      return false;
  }
  return false;
}

void ThinkParser::finish(std::vector<AnswerPart>& parts) {
  put(in_reasoning(), std::move(held_), parts);
  held_.clear();
}

std::unique_ptr<AnswerParser> make_answer_parser(std::string_view template_source,
                                                 std::string_view prompt) {
  if (template_source.find(kClose) == std::string_view::npos) {
    return std::make_unique<PlainParser>();
  }
  const auto written = prompt.substr(0, prompt.find_last_not_of(kSpace) + 1);
  return std::make_unique<ThinkParser>(written.ends_with(kOpen));
}

}  // namespace sluice::text
