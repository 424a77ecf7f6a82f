// A whole file mapped into memory: private (writes stay in this process and copy the page), so that
// arrays may be built over it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"

namespace sluice {

class MappedFile {
 public:
  // Errors: kNotFound; kInvalidArgument for what is no regular file; kIo with the system's reason.
  // An empty file maps to an empty span. If somebody truncates the file while it is mapped, reading
  // past its new end raises SIGBUS, as with every mapping: replace model files by renaming.
  static Result<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Page-aligned; writable, see above.
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Asks the kernel to read a range ahead; a hint, errors are ignored.
  void prefetch(size_t offset, size_t length) const;

 private:
  MappedFile(std::filesystem::path path, std::byte* data, size_t size);

  std::filesystem::path path_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sluice
