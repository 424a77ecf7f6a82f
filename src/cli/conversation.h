// A multi-turn chat without its terminal: the messages, and answers that extend them.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/text_model.h"

namespace sluice::cli {

// The engine keeps the tokens of the last turn in its cache, so that a turn computes only what is
// new.
class Conversation {
 public:
  // model must outlive it. system may be empty.
  Conversation(const TextModel& model, std::string system);

  // Forgets all turns; the system prompt stays.
  void clear();
  // Replaces the system prompt and forgets all turns.
  void set_system(std::string system);
  const std::string& system() const { return system_; }

  // Asks `text` and takes the answer into the conversation, also one that Ctrl-C cut short. After
  // an error the conversation is as before. request is everything but the prompt; without
  // max_tokens the answer may fill what fits, at most default_max_tokens.
  Result<Answer> ask(std::string_view text,
                     engine::GenerateRequest request,
                     int default_max_tokens,
                     const std::vector<std::string>& stop_strings,
                     const std::function<void(std::string_view)>& on_text,
                     const std::atomic<bool>* cancel);

 private:
  const TextModel& model_;
  std::string system_;
  Json messages_ = Json::array();
};

}  // namespace sluice::cli
