// The C++ edge of the Rust bridge, for src/text's and the terminal wrapper's .cpp files only:
// owned buffers, owned handles and statuses turned into errors.
#pragma once

#include <sluice_bridge.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice::text {

// An output buffer of the bridge. Reusable: each call that fills it keeps the storage.
class BridgeBytes {
 public:
  BridgeBytes() = default;
  ~BridgeBytes() { sluice_bytes_free(&raw_); }
  BridgeBytes(const BridgeBytes&) = delete;
  BridgeBytes& operator=(const BridgeBytes&) = delete;

  sluice_bytes* out() { return &raw_; }
  std::string_view view() const {
    return raw_.len == 0 ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(raw_.data), raw_.len);
  }
  std::string str() const { return std::string(view()); }

 private:
  sluice_bytes raw_{};
};

class BridgeIds {
 public:
  BridgeIds() = default;
  ~BridgeIds() { sluice_ids_free(&raw_); }
  BridgeIds(const BridgeIds&) = delete;
  BridgeIds& operator=(const BridgeIds&) = delete;

  sluice_ids* out() { return &raw_; }
  std::vector<int32_t> vector() const { return {raw_.data, raw_.data + raw_.len}; }

 private:
  sluice_ids raw_{};
};

inline sluice_str to_bridge(std::string_view text) {
  return {text.data(), text.size()};
}

// Success, or the bridge's text with the code that fits the status: bad argument and template
// raise are the caller's (kInvalidArgument), a panic is ours (kInternal), the rest is `otherwise`.
Status bridge_status(int32_t status, const BridgeBytes& err, ErrorCode otherwise);

// Deleter of an opaque handle.
template <class T, void (*Free)(T*)>
struct BridgeDeleter {
  void operator()(T* handle) const { Free(handle); }
};
template <class T, void (*Free)(T*)>
using BridgeHandle = std::unique_ptr<T, BridgeDeleter<T, Free>>;

}  // namespace sluice::text
