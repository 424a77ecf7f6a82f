#include "loader/json_text.h"

#include <set>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace sluice::loader {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& name, int max_depth) {
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  std::string complaint;
  const auto watch = [&](int depth, Event event, nlohmann::json& value) {
    if (!complaint.empty()) return false;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth >= max_depth) complaint = fmt::format("is nested deeper than {}", max_depth);
      if (event == Event::object_start) keys.emplace_back();
    } else if (event == Event::object_end) {
      keys.pop_back();
    } else if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) {
      complaint = fmt::format("has the key \"{}\" twice in one object", value.get<std::string>());
    }
    return complaint.empty();
  };
  try {
    auto result = nlohmann::json::parse(text.begin(), text.end(), watch);
    if (complaint.empty()) return result;
  } catch (const nlohmann::json::exception& cause) {
    complaint = fmt::format("is not valid JSON: {}", cause.what());
  }
  return make_error(ErrorCode::kCorruptFile, "{}: {}", name, complaint);
}

Result<nlohmann::json> read_json_object(const std::filesystem::path& path) {
  SLUICE_TRY(const auto file, MappedFile::open(path));
  SLUICE_TRY(auto result, parse_json(file->text(), path.string()));
  if (!result.is_object()) {
    return make_error(ErrorCode::kCorruptFile, "{}: must hold a JSON object", path.string());
  }
  return result;
}

}  // namespace sluice::loader
