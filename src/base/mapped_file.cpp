#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice {

namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Error system_error(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  return make_error(code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                    "{}: cannot {}: {}",
                    path.string(),
                    what,
                    std::strerror(code));
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return system_error(path, "open");
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return system_error(path, "stat");
  if (!S_ISREG(info.st_mode)) {
    return make_error(ErrorCode::kInvalidArgument, "{}: is not a regular file", path.string());
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) {
    // MAP_NORESERVE: a writable private mapping would otherwise count against the commit limit in
    // full, though nearly all of it stays clean.
    data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.fd, 0);
    if (data == MAP_FAILED) return system_error(path, "map");
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<std::byte*>(data), size));
}

MappedFile::MappedFile(std::filesystem::path path, std::byte* data, size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(data_, size_);
}

void MappedFile::prefetch(size_t offset, size_t length) const {
  if (offset >= size_) return;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = offset / page * page;
  const size_t end = offset + std::min(length, size_ - offset);
  ::madvise(data_ + begin, end - begin, MADV_WILLNEED);
}

}  // namespace sluice
