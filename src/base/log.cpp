#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 6> kLevels{{
    {"trace", spdlog::level::trace},
    {"debug", spdlog::level::debug},
    {"info", spdlog::level::info},
    {"warn", spdlog::level::warn},
    {"error", spdlog::level::err},
    {"off", spdlog::level::off},
}};

}  // namespace

Status init_logging(std::string_view level) {
  std::string_view source = "the log level";
  if (level.empty()) {
    const char* variable = std::getenv(kLogLevelVariable);
    level = variable != nullptr && *variable != '\0' ? variable : "warn";
    source = kLogLevelVariable;
  }
  for (const auto& [name, value] : kLevels) {
    if (name != level) continue;
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>("", std::move(sink));
    logger->set_pattern("%H:%M:%S.%e %^%l%$ %v");
    logger->set_level(value);
    spdlog::set_default_logger(std::move(logger));
    return {};
  }
  return make_error(ErrorCode::kInvalidArgument,
                    "{} is '{}'; it may be trace, debug, info, warn, error or off",
                    source,
                    level);
}

}  // namespace sluice
