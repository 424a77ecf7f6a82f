#include "text/bridge.h"

namespace sluice::text {

Status bridge_status(int32_t status, const BridgeBytes& err, ErrorCode otherwise) {
  switch (status) {
    case SLUICE_OK:
      return {};
    case SLUICE_BAD_ARGUMENT:
    case SLUICE_TEMPLATE_RAISE:
      return Error{ErrorCode::kInvalidArgument, err.str()};
    case SLUICE_PANIC:
      return Error{ErrorCode::kInternal, err.str()};
    default:
      return Error{otherwise, err.str()};
  }
}

}  // namespace sluice::text
