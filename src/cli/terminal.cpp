#include "cli/terminal.h"

#include "text/bridge.h"

namespace sluice::cli {

using text::bridge_status;
using text::BridgeBytes;
using text::BridgeHandle;
using text::to_bridge;

struct LineEditor::Impl {
  BridgeHandle<sluice_line, sluice_line_free> handle;
  BridgeBytes line;
  BridgeBytes err;
};

LineEditor::LineEditor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineEditor::~LineEditor() = default;
LineEditor::LineEditor(LineEditor&&) noexcept = default;
LineEditor& LineEditor::operator=(LineEditor&&) noexcept = default;

Result<LineEditor> LineEditor::create(std::string_view history_path) {
  auto impl = std::make_unique<Impl>();
  sluice_line* raw = nullptr;
  const int32_t status = sluice_line_new(to_bridge(history_path), &raw, impl->err.out());
  SLUICE_TRY_STATUS(bridge_status(status, impl->err, ErrorCode::kIo));
  impl->handle.reset(raw);
  return LineEditor(std::move(impl));
}

Result<Line> LineEditor::read(std::string_view prompt) {
  int32_t kind = SLUICE_LINE_EOF;
  const int32_t status = sluice_line_read(
      impl_->handle.get(), to_bridge(prompt), impl_->line.out(), &kind, impl_->err.out());
  SLUICE_TRY_STATUS(bridge_status(status, impl_->err, ErrorCode::kIo));
  switch (kind) {
    case SLUICE_LINE_TEXT:
      return Line{LineKind::kText, impl_->line.str()};
    case SLUICE_LINE_INTERRUPTED:
      return Line{LineKind::kInterrupted, {}};
    default:
      return Line{LineKind::kEof, {}};
  }
}

Status LineEditor::save() {
  return bridge_status(
      sluice_line_save(impl_->handle.get(), impl_->err.out()), impl_->err, ErrorCode::kIo);
}

struct ProgressBar::Impl {
  BridgeHandle<sluice_progress, sluice_progress_free> handle;
  BridgeBytes err;
};

ProgressBar::~ProgressBar() = default;
ProgressBar::ProgressBar(ProgressBar&&) noexcept = default;
ProgressBar& ProgressBar::operator=(ProgressBar&&) noexcept = default;

// None of the calls below fails for any input but a message that is no UTF-8, and a bar is no
// reason to fail: an error means that nothing is drawn.
ProgressBar::ProgressBar(std::string_view message, uint64_t total, ProgressUnit unit)
    : impl_(std::make_unique<Impl>()) {
  sluice_progress* raw = nullptr;
  const uint32_t raw_unit =
      unit == ProgressUnit::kBytes ? SLUICE_PROGRESS_BYTES : SLUICE_PROGRESS_COUNT;
  if (sluice_progress_new(total, raw_unit, to_bridge(message), &raw, impl_->err.out()) ==
      SLUICE_OK) {
    impl_->handle.reset(raw);
  }
}

void ProgressBar::set(uint64_t position) {
  if (impl_->handle) sluice_progress_set(impl_->handle.get(), position, impl_->err.out());
}

void ProgressBar::set_message(std::string_view message) {
  if (impl_->handle) {
    sluice_progress_message(impl_->handle.get(), to_bridge(message), impl_->err.out());
  }
}

}  // namespace sluice::cli
