#include "server/openai/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace sluice::server {
namespace {

using chat::Json;

std::string element(std::string_view path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

// Text of a content array: its text parts put together.
std::string join_parts(const Json& parts, const std::string& path, std::optional<ApiError>& error) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string at = element(path, i);
    if (!parts[i].is_object()) {
      error = error ? error
                    : invalid_value(at,
                                    fmt::format("'{}' must be a content part (an object), not {}",
                                                at,
                                                describe(parts[i])));
      return text;
    }
    Fields part(parts[i], at, error);
    std::string type;
    if (!part.require("type")) return text;
    part.read("type", type);
    if (error) return text;
    if (type != "text") {
      part.fail(unsupported_value(
          part.path_of("type"),
          fmt::format("content of type '{}' is not supported; only 'text' is", type)));
      return text;
    }
    std::string piece;
    if (part.require("text")) part.read("text", piece);
    text += piece;
  }
  return text;
}

void read_content(Fields& message,
                  const std::string& role,
                  Json& out,
                  std::optional<ApiError>& error) {
  const Json* content = message.find("content");
  if (content == nullptr) {
    // Only an assistant may have said nothing: it called tools.
    if (role != "assistant" || message.find("tool_calls") == nullptr) message.require("content");
    out["content"] = nullptr;
  } else if (content->is_string()) {
    out["content"] = *content;
  } else if (content->is_array()) {
    out["content"] = join_parts(*content, message.path_of("content"), error);
  } else {
    message.expected("content", "a string or an array of content parts", *content);
  }
}

void read_tool_calls(Fields& message, Json& out, std::optional<ApiError>& error) {
  const Json* calls = message.array("tool_calls");
  if (calls == nullptr) return;
  Json list = Json::array();
  for (size_t i = 0; i < calls->size() && !error; ++i) {
    const std::string at = element(message.path_of("tool_calls"), i);
    if (!(*calls)[i].is_object()) {
      error = invalid_value(
          at, fmt::format("'{}' must be an object, not {}", at, describe((*calls)[i])));
      return;
    }
    Fields call((*calls)[i], at, error);
    std::string id, type = "function", name, arguments;
    call.read("id", id);
    call.read("type", type);
    if (type != "function") {
      call.fail(unsupported_value(call.path_of("type"),
                                  fmt::format("tool calls of type '{}' are not supported", type)));
    }
    if (!call.require("function")) return;
    const Json* function = call.object("function");
    if (function == nullptr) return;
    Fields fields(*function, call.path_of("function"), error);
    if (fields.require("name")) fields.read("name", name);
    if (fields.require("arguments")) fields.read("arguments", arguments);
    list.push_back({{"id", id},
                    {"type", "function"},
                    {"function", {{"name", name}, {"arguments", arguments}}}});
  }
  if (!list.empty()) out["tool_calls"] = std::move(list);
}

Json read_message(const Json& json, const std::string& path, std::optional<ApiError>& error) {
  constexpr std::array<std::string_view, 5> kRoles{
      "system", "developer", "user", "assistant", "tool"};
  Json out = Json::object();
  if (!json.is_object()) {
    error = invalid_value(
        path, fmt::format("'{}' must be a message (an object), not {}", path, describe(json)));
    return out;
  }
  Fields message(json, path, error);
  std::string role;
  if (message.require("role")) message.read("role", role);
  if (error) return out;
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    message.expected("role", "one of system, developer, user, assistant and tool", json["role"]);
    return out;
  }
  out["role"] = role == "developer" ? "system" : role;
  read_content(message, role, out, error);
  for (const char* key : {"name", "tool_call_id", "reasoning_content"}) {
    std::string text;
    message.read(key, text);
    if (!text.empty()) out[key] = text;
  }
  if (role == "assistant") read_tool_calls(message, out, error);
  if (role == "tool") message.require("tool_call_id");
  return out;
}

void read_tool(const Json& json, const std::string& path, std::optional<ApiError>& error) {
  constexpr size_t kMaxName = 64;
  if (!json.is_object()) {
    error = invalid_value(
        path, fmt::format("'{}' must be a tool (an object), not {}", path, describe(json)));
    return;
  }
  Fields tool(json, path, error);
  std::string type;
  if (tool.require("type")) tool.read("type", type);
  if (error) return;
  if (type != "function") {
    return tool.fail(unsupported_value(tool.path_of("type"),
                                       fmt::format("tools of type '{}' are not supported; only "
                                                   "'function' is",
                                                   type)));
  }
  if (!tool.require("function")) return;
  const Json* function = tool.object("function");
  if (function == nullptr) return;
  Fields fields(*function, tool.path_of("function"), error);
  std::string name, description;
  bool strict = false;
  if (fields.require("name")) fields.read("name", name);
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '-' || c == '.';
  };
  if (!error &&
      (name.empty() || name.size() > kMaxName || !std::all_of(name.begin(), name.end(), allowed))) {
    fields.expected(
        "name", "1 to 64 of the characters a-z, A-Z, 0-9, '_', '-' and '.'", (*function)["name"]);
  }
  fields.read("description", description);
  fields.object("parameters");
  fields.read("strict", strict);
  if (strict) {
    fields.fail(unsupported_value(fields.path_of("strict"),
                                  "strict tool schemas are not supported yet; leave 'strict' out"));
  }
}

// True: the template is to see the tools.
bool read_tool_choice(Fields& body, bool has_tools) {
  bool parallel = true;
  body.read("parallel_tool_calls", parallel);
  if (has_tools && !parallel) {
    body.fail(unsupported_value("parallel_tool_calls",
                                "a limit of one tool call at a time is not supported yet; leave "
                                "'parallel_tool_calls' out"));
  }
  const Json* choice = body.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return true;
  if (*choice == "none") return false;
  if (choice->is_object() || *choice == "required") {
    body.fail(unsupported_value("tool_choice",
                                "forcing a tool call is not supported yet; 'tool_choice' may be "
                                "\"auto\" or \"none\""));
  } else {
    body.expected("tool_choice", "\"auto\" or \"none\"", *choice);
  }
  return true;
}

}  // namespace

chat::Messages read_messages(Fields& body, std::optional<ApiError>& error) {
  chat::Messages out;
  if (!body.require("messages")) return out;
  const Json* messages = body.array("messages");
  if (messages == nullptr) return out;
  if (messages->empty()) {
    body.fail(invalid_value("messages", "'messages' is empty; at least one message is needed"));
  }
  for (size_t i = 0; i < messages->size() && !error; ++i) {
    out.messages.push_back(read_message((*messages)[i], element("messages", i), error));
  }
  const Json* tools = body.array("tools");
  for (size_t i = 0; tools != nullptr && i < tools->size() && !error; ++i) {
    read_tool((*tools)[i], element("tools", i), error);
  }
  const bool show_tools = read_tool_choice(body, tools != nullptr && !tools->empty());
  if (tools != nullptr && show_tools) out.tools = *tools;
  if (const Json* kwargs = body.object("chat_template_kwargs")) out.template_kwargs = *kwargs;
  std::string effort;
  body.read("reasoning_effort", effort);
  if (!effort.empty()) out.template_kwargs["reasoning_effort"] = effort;
  return out;
}

}  // namespace sluice::server
