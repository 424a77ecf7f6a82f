#include "base/result.h"

namespace sluice {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorruptFile:
      return "corrupt_file";
    case ErrorCode::kIo:
      return "io_error";
    case ErrorCode::kResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace sluice
