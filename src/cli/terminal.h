// Line editing with history, and a progress bar, by the Rust crates rustyline and indicatif.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice::cli {

enum class LineKind {
  kText,
  kInterrupted,  // Ctrl-C
  kEof,          // Ctrl-D on an empty line, or the end of a pipe
};

struct Line {
  LineKind kind = LineKind::kEof;
  std::string text;  // of kText, without its newline
};

// Reads lines from the terminal with editing (Emacs keys) and history, or plainly from stdin if
// that is no terminal. For one thread at a time.
class LineEditor {
 public:
  // Reads the history from `history_path` if the file is there; empty: none is kept. kIo for a
  // file that cannot be read.
  static Result<LineEditor> create(std::string_view history_path);
  ~LineEditor();
  LineEditor(LineEditor&&) noexcept;
  LineEditor& operator=(LineEditor&&) noexcept;

  // Blocks until a line is complete and adds it to the history.
  Result<Line> read(std::string_view prompt);
  // Appends the new lines to the history file, whose folder must exist. At most 1,000 lines stay.
  Status save();

 private:
  struct Impl;
  explicit LineEditor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

enum class ProgressUnit { kCount, kBytes };

// A bar on stderr, drawn some times a second; nothing is drawn if stderr is no terminal. The
// destructor takes the bar away. For one thread at a time.
class ProgressBar {
 public:
  ProgressBar(std::string_view message, uint64_t total, ProgressUnit unit);
  ~ProgressBar();
  ProgressBar(ProgressBar&&) noexcept;
  ProgressBar& operator=(ProgressBar&&) noexcept;

  void set(uint64_t position);
  void set_message(std::string_view message);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::cli
