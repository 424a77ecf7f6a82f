#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace sluice {
namespace {

std::filesystem::path write_file(const std::string& name, const std::string& content) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("sluice-{}-{}", ::getpid(), name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(MappedFile, GivesTheFilesBytes) {
  const auto path = write_file("mapped", std::string("ab\0c", 4));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->text(), std::string_view("ab\0c", 4));
  EXPECT_EQ((*file)->path(), path);
  std::filesystem::remove(path);
  EXPECT_EQ((*file)->text()[0], 'a') << "the mapping outlives the name";
}

TEST(MappedFile, WritesStayPrivate) {
  const auto path = write_file("private", "abc");
  {
    auto file = MappedFile::open(path);
    ASSERT_TRUE(file.ok());
    (*file)->data()[0] = std::byte{'x'};
    EXPECT_EQ((*file)->text(), "xbc");
  }
  auto again = MappedFile::open(path);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->text(), "abc");
  std::filesystem::remove(path);
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const auto path = write_file("empty", "");
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 0u);
  (*file)->prefetch(0, 10);
  std::filesystem::remove(path);
}

TEST(MappedFile, PrefetchTakesAnyRange) {
  const auto path = write_file("prefetch", std::string(10000, 'q'));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file.ok());
  (*file)->prefetch(5000, ~size_t{0});
  (*file)->prefetch(20000, 1);
  EXPECT_EQ((*file)->text()[9999], 'q');
  std::filesystem::remove(path);
}

TEST(MappedFile, ErrorsNameThePathAndTheReason) {
  auto missing = MappedFile::open("/nonexistent/sluice.bin");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find("/nonexistent/sluice.bin"), std::string::npos);

  auto folder = MappedFile::open(std::filesystem::temp_directory_path());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
