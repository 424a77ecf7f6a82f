#include "cli/conversation.h"

#include <algorithm>

namespace sluice::cli {

Conversation::Conversation(const TextModel& model, std::string system)
    : model_(model), system_(std::move(system)) {
  clear();
}

void Conversation::clear() {
  messages_ = Json::array();
  if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
}

void Conversation::set_system(std::string system) {
  system_ = std::move(system);
  clear();
}

Result<Answer> Conversation::ask(std::string_view text,
                                 engine::GenerateRequest request,
                                 int default_max_tokens,
                                 const std::vector<std::string>& stop_strings,
                                 const std::function<void(std::string_view)>& on_text,
                                 const std::atomic<bool>* cancel) {
  auto messages = messages_;
  messages.push_back({{"role", "user"}, {"content", text}});
  chat::Messages conversation;
  conversation.messages = messages;
  SLUICE_TRY(request.prompt, model_.encode(conversation));
  if (!request.max_tokens) {
    const int room = model_.room_behind(request.prompt.size());
    if (room < 1) {
      return make_error(ErrorCode::kInvalidArgument,
                        "the conversation has {} tokens and at most {} fit; start a new one with "
                        "/clear",
                        request.prompt.size(),
                        model_.room_behind(0));
    }
    request.max_tokens = std::min(default_max_tokens, room);
  }
  SLUICE_TRY(auto answer, generate_answer(model_, request, stop_strings, on_text, cancel));
  messages.push_back({{"role", "assistant"}, {"content", answer.text}});
  messages_ = std::move(messages);
  return answer;
}

}  // namespace sluice::cli
