#include "text/chat_template.h"

#include "text/bridge.h"

namespace sluice::text {

struct ChatTemplate::Impl {
  BridgeHandle<sluice_template, sluice_template_free> handle;
};

Result<ChatTemplate> ChatTemplate::from_source(std::string_view source,
                                               std::string_view bos,
                                               std::string_view eos) {
  BridgeBytes err;
  sluice_template* raw = nullptr;
  const int32_t status =
      sluice_template_new(to_bridge(source), to_bridge(bos), to_bridge(eos), &raw, err.out());
  SLUICE_TRY_STATUS(bridge_status(status, err, ErrorCode::kCorruptFile));
  auto impl = std::make_shared<Impl>();
  impl->handle.reset(raw);
  return ChatTemplate(std::move(impl));
}

Result<std::string> ChatTemplate::render(const ChatRenderInput& input) const {
  const sluice_render_input raw = {to_bridge(input.messages_json),
                                   to_bridge(input.tools_json),
                                   to_bridge(input.kwargs_json),
                                   input.add_generation_prompt};
  BridgeBytes err;
  BridgeBytes text;
  const int32_t status = sluice_template_render(impl_->handle.get(), &raw, text.out(), err.out());
  SLUICE_TRY_STATUS(bridge_status(status, err, ErrorCode::kUnsupported));
  return text.str();
}

}  // namespace sluice::text
