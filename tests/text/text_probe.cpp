// Runs src/text on requests from stdin, one JSON object a line, answers one a line on stdout, so
// that the parity tests can hold it against Hugging Face's Python packages. Requests by "op":
//   load {path}                                     a tokenizer.json
//   encode {text, add_special, parse_special}    -> {ids}
//   decode {ids, skip_special}                   -> {text}
//   stream {ids, prompt, skip_special}           -> {pieces}, the last one from finish()
//   bytes {ids}                                  -> {hex}, null for ids without a token
//   template {source, bos, eos}
//   render {messages, tools, kwargs, add_generation_prompt} -> {text}; the first three JSON texts
// An error gives {"error": message, "code": name}.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using nlohmann::json;
using sluice::ErrorCode;
using sluice::Result;
using sluice::text::ChatTemplate;
using sluice::text::DetokenizerStream;
using sluice::text::Tokenizer;

class Probe {
 public:
  Result<json> answer(const json& request) {
    const auto op = request.at("op").get<std::string>();
    if (op == "load") return load(request);
    if (op == "template") return compile(request);
    if (op == "render") return render(request);
    if (!tokenizer_) return missing("tokenizer");
    if (op == "encode") return encode(request);
    if (op == "decode") return decode(request);
    if (op == "stream") return stream(request);
    if (op == "bytes") return bytes(request);
    return sluice::make_error(ErrorCode::kInvalidArgument, "unknown op {}", op);
  }

 private:
  static sluice::Error missing(const char* what) {
    return sluice::make_error(ErrorCode::kInvalidArgument, "no {} was loaded", what);
  }

  Result<json> load(const json& request) {
    std::ifstream file(request.at("path").get<std::string>(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    SLUICE_TRY(tokenizer_, Tokenizer::from_json(text));
    return json{{"vocab_size", tokenizer_->vocab_size()}};
  }

  Result<json> encode(const json& request) {
    SLUICE_TRY(const auto ids,
               tokenizer_->encode(request.at("text").get<std::string>(),
                                  {.add_special = request.at("add_special").get<bool>(),
                                   .parse_special = request.value("parse_special", true)}));
    return json{{"ids", ids}};
  }

  Result<json> decode(const json& request) {
    SLUICE_TRY(const auto text,
               tokenizer_->decode(request.at("ids").get<std::vector<int32_t>>(),
                                  request.at("skip_special").get<bool>()));
    return json{{"text", text}};
  }

  Result<json> stream(const json& request) {
    const auto prompt = request.value("prompt", std::vector<int32_t>());
    SLUICE_TRY(
        auto stream,
        DetokenizerStream::create(*tokenizer_, request.at("skip_special").get<bool>(), prompt));
    json pieces = json::array();
    for (const json& id : request.at("ids")) {
      SLUICE_TRY(const auto piece, stream.step(id.get<int32_t>()));
      pieces.push_back(piece);
    }
    SLUICE_TRY(const auto rest, stream.finish());
    pieces.push_back(rest);
    return json{{"pieces", pieces}};
  }

  Result<json> bytes(const json& request) {
    json list = json::array();
    for (const json& id : request.at("ids")) {
      const auto bytes = tokenizer_->token_bytes(id.get<int32_t>());
      if (!bytes) {
        list.push_back(nullptr);
        continue;
      }
      std::string hex;
      for (const unsigned char byte : *bytes) hex += fmt::format("{:02x}", byte);
      list.push_back(hex);
    }
    return json{{"hex", list}};
  }

  Result<json> compile(const json& request) {
    template_.reset();
    SLUICE_TRY(template_,
               ChatTemplate::from_source(request.at("source").get<std::string>(),
                                         request.at("bos").get<std::string>(),
                                         request.at("eos").get<std::string>()));
    return json::object();
  }

  Result<json> render(const json& request) {
    if (!template_) return missing("template");
    const auto messages = request.at("messages").get<std::string>();
    const auto tools = request.at("tools").get<std::string>();
    const auto kwargs = request.at("kwargs").get<std::string>();
    SLUICE_TRY(const auto text,
               template_->render(
                   {messages, tools, kwargs, request.at("add_generation_prompt").get<bool>()}));
    return json{{"text", text}};
  }

  std::optional<Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
};

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  Probe probe;
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = probe.answer(json::parse(line));
    if (answer.ok()) {
      std::cout << answer->dump() << std::endl;
    } else {
      const auto& error = answer.error();
      std::cout
          << json{{"error", error.message}, {"code", sluice::error_code_name(error.code)}}.dump()
          << std::endl;
    }
  }
  return 0;
}
