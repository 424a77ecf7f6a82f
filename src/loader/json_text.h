// Parses JSON files with limits, so that a hostile file gives an error.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::loader {

// text: UTF-8, at most max_depth levels of arrays and objects. name: for messages. Errors:
// kCorruptFile with the parser's reason and place; also for a key that an object has twice, which
// nlohmann_json would let pass.
Result<nlohmann::json> parse_json(std::string_view text,
                                  const std::string& name,
                                  int max_depth = 64);

// A whole file whose top is an object. Errors as above, and MappedFile's.
Result<nlohmann::json> read_json_object(const std::filesystem::path& path);

}  // namespace sluice::loader
