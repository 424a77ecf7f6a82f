// Appends to JSON text directly: vocabularies and merge lists have hundreds of thousands of
// entries, for which building a DOM first costs a second of start-up.
#pragma once

#include <string>
#include <string_view>

namespace sluice::loader {

// Appends text as a JSON string, quotes included. False (with nothing appended) if it is not UTF-8.
bool append_json_string(std::string_view text, std::string& out);

}  // namespace sluice::loader
