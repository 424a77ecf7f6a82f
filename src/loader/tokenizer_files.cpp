#include "loader/tokenizer_files.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/mapped_file.h"
#include "loader/json_text.h"

namespace sluice::loader {

namespace {

using nlohmann::json;

Status add_ids(const json& object, const char* key, const char* file, std::vector<int32_t>& ids) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  const json list = found->is_array() ? *found : json::array({*found});
  for (const auto& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() > std::numeric_limits<int32_t>::max()) {
      return make_error(ErrorCode::kCorruptFile,
                        "{}: {} is {}; it must hold token ids",
                        file,
                        key,
                        found->dump());
    }
    ids.push_back(id.get<int32_t>());
  }
  return {};
}

void sort_unique(std::vector<int32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

// Reads what comes before the vocabulary in a tokenizer.json: the added tokens' ids and the strings
// of the post-processor. Parsing megabytes of vocabulary for that would take half a second, so it
// stops at "model" once it has both (Hugging Face writes the model last).
class HeadReader : public nlohmann::json_sax<json> {
 public:
  std::map<std::string, int32_t> added_tokens;
  std::set<std::string> post_processor_strings;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(
        value > uint64_t(std::numeric_limits<int32_t>::max()) ? -1 : static_cast<int64_t>(value));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& value) override {
    if (section_ == "added_tokens" && depth_ == 3 && key_ == "content") content_ = value;
    if (section_ == "post_processor") post_processor_strings.insert(value);
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    ++depth_;
    return true;
  }
  bool end_object() override {
    if (section_ == "added_tokens" && depth_ == 3 && id_ >= 0) added_tokens[content_] = id_;
    if (depth_ == 3) id_ = -1;
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return start_object(0); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      section_ = value;
      sections_.insert(value);
      return !(value == "model" && sections_.contains("added_tokens") &&
               sections_.contains("post_processor"));
    }
    key_ = value;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& cause) override {
    error = cause.what();
    return false;
  }
  std::string error;

 private:
  bool number(int64_t value) {
    if (section_ == "added_tokens" && depth_ == 3 && key_ == "id" && value >= 0) {
      id_ = static_cast<int32_t>(value);
    }
    return true;
  }

  int depth_ = 0;
  std::string section_, key_, content_;
  std::set<std::string> sections_;
  int32_t id_ = -1;
};

// tokenizer_config's "eos_token": a string, or an object with "content".
std::optional<std::string> token_text(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string()) {
    return found->at("content").get<std::string>();
  }
  return std::nullopt;
}

Status read_templates(Checkpoint& checkpoint) {
  const auto file = checkpoint.path / "chat_template.jinja";
  if (std::filesystem::exists(file)) {
    SLUICE_TRY(const auto mapped, MappedFile::open(file));
    checkpoint.chat_template = std::string(mapped->text());
    return {};
  }
  const auto found = checkpoint.tokenizer_config.find("chat_template");
  if (found == checkpoint.tokenizer_config.end() || found->is_null()) return {};
  if (found->is_string()) {
    checkpoint.chat_template = found->get<std::string>();
    return {};
  }
  const auto malformed = make_error(ErrorCode::kCorruptFile,
                                    "{}: chat_template must be a string or a list of {{name, "
                                    "template}}",
                                    (checkpoint.path / "tokenizer_config.json").string());
  if (!found->is_array()) return malformed;
  for (const auto& entry : *found) {
    const auto name = token_text(entry.is_object() ? entry : json::object(), "name");
    const auto text = token_text(entry.is_object() ? entry : json::object(), "template");
    if (!name || !text) return malformed;
    if (*name == "default") checkpoint.chat_template = *text;
    if (*name == "tool_use") checkpoint.tool_chat_template = *text;
  }
  return {};
}

}  // namespace

Status read_special_tokens(Checkpoint& checkpoint) {
  const json empty = json::object();
  const auto text = checkpoint.config.find("text_config");
  const json& text_config = text != checkpoint.config.end() && text->is_object() ? *text : empty;
  const std::pair<const json*, const char*> sources[] = {
      {&checkpoint.config, "config.json"},
      {&text_config, "config.json (text_config)"},
      {&checkpoint.generation_config, "generation_config.json"}};
  for (const auto& [object, file] : sources) {
    SLUICE_TRY_STATUS(add_ids(*object, "eos_token_id", file, checkpoint.eos_token_ids));
    std::vector<int32_t> bos;
    SLUICE_TRY_STATUS(add_ids(*object, "bos_token_id", file, bos));
    if (!bos.empty() && !checkpoint.bos_token_id) checkpoint.bos_token_id = bos.front();
  }
  sort_unique(checkpoint.eos_token_ids);
  return {};
}

Status read_tokenizer_files(Checkpoint& checkpoint) {
  const auto path = checkpoint.path / "tokenizer.json";
  SLUICE_TRY(const auto mapped, MappedFile::open(path));
  checkpoint.tokenizer_json = std::string(mapped->text());
  const auto config_path = checkpoint.path / "tokenizer_config.json";
  if (std::filesystem::exists(config_path)) {
    SLUICE_TRY(checkpoint.tokenizer_config, read_json_object(config_path));
  }
  SLUICE_TRY_STATUS(read_templates(checkpoint));

  HeadReader head;
  json::sax_parse(checkpoint.tokenizer_json, &head);
  if (!head.error.empty()) {
    return make_error(
        ErrorCode::kCorruptFile, "{}: is not valid JSON: {}", path.string(), head.error);
  }
  const auto id_of = [&](const char* key) -> std::optional<int32_t> {
    const auto text = token_text(checkpoint.tokenizer_config, key);
    const auto found = text ? head.added_tokens.find(*text) : head.added_tokens.end();
    return found == head.added_tokens.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto eos = id_of("eos_token")) checkpoint.eos_token_ids.push_back(*eos);
  sort_unique(checkpoint.eos_token_ids);
  if (const auto bos = id_of("bos_token")) checkpoint.bos_token_id = bos;
  const auto bos_text = token_text(checkpoint.tokenizer_config, "bos_token");
  checkpoint.add_bos = bos_text && head.post_processor_strings.contains(*bos_text);
  return {};
}

}  // namespace sluice::loader
