#include "text/tokenizer.h"

#include <nlohmann/json.hpp>

#include "text/bridge.h"

namespace sluice::text {

using TokHandle = BridgeHandle<sluice_tok, sluice_tok_free>;
using StreamHandle = BridgeHandle<sluice_stream, sluice_stream_free>;

namespace {

// The bridge's ids are unsigned.
Result<std::vector<uint32_t>> to_bridge_ids(std::span<const int32_t> ids) {
  std::vector<uint32_t> result(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) {
      return make_error(
          ErrorCode::kInvalidArgument, "token id {} at index {} is negative", ids[i], i);
    }
    result[i] = static_cast<uint32_t>(ids[i]);
  }
  return result;
}

}  // namespace

struct Tokenizer::Impl {
  TokHandle handle;
  std::vector<AddedToken> added;
};

Result<Tokenizer> Tokenizer::from_json(std::string_view tokenizer_json) {
  BridgeBytes err;
  sluice_tok* raw = nullptr;
  SLUICE_TRY_STATUS(bridge_status(
      sluice_tok_new(to_bridge(tokenizer_json), &raw, err.out()), err, ErrorCode::kCorruptFile));
  auto impl = std::make_shared<Impl>();
  impl->handle.reset(raw);

  BridgeBytes list;
  SLUICE_TRY_STATUS(bridge_status(
      sluice_tok_added_tokens(raw, list.out(), err.out()), err, ErrorCode::kInternal));
  for (const nlohmann::json& token : nlohmann::json::parse(list.view())) {
    impl->added.push_back({token.at("id").get<int32_t>(),
                           token.at("content").get<std::string>(),
                           token.at("special").get<bool>()});
  }
  return Tokenizer(std::move(impl));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const uint32_t flags = (options.add_special ? SLUICE_ENCODE_ADD_SPECIAL : 0) |
                         (options.parse_special ? 0 : SLUICE_ENCODE_NO_PARSE_SPECIAL);
  BridgeBytes err;
  BridgeIds ids;
  SLUICE_TRY_STATUS(
      bridge_status(sluice_tok_encode(handle(), to_bridge(text), flags, ids.out(), err.out()),
                    err,
                    ErrorCode::kInternal));
  return ids.vector();
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  SLUICE_TRY(const auto list, to_bridge_ids(ids));
  BridgeBytes err;
  BridgeBytes text;
  const int32_t status = sluice_tok_decode(handle(),
                                           list.data(),
                                           list.size(),
                                           skip_special ? SLUICE_DECODE_SKIP_SPECIAL : 0,
                                           text.out(),
                                           err.out());
  SLUICE_TRY_STATUS(bridge_status(status, err, ErrorCode::kInternal));
  return text.str();
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const {
  BridgeBytes err;
  int64_t id = -1;
  // The only failure is invalid UTF-8, which no token is.
  if (sluice_tok_token_to_id(handle(), to_bridge(token), &id, err.out()) != SLUICE_OK || id < 0) {
    return std::nullopt;
  }
  return static_cast<int32_t>(id);
}

namespace {

using Lookup = int32_t (*)(const sluice_tok*, uint32_t, sluice_bytes*, bool*, sluice_bytes*);

std::optional<std::string> look_up(Lookup function, const sluice_tok* tok, int32_t id) {
  if (id < 0) return std::nullopt;
  BridgeBytes err;
  BridgeBytes text;
  bool found = false;
  const int32_t status = function(tok, static_cast<uint32_t>(id), text.out(), &found, err.out());
  bridge_status(status, err, ErrorCode::kInternal).or_throw();
  if (!found) return std::nullopt;
  return text.str();
}

}  // namespace

std::optional<std::string> Tokenizer::id_to_token(int32_t id) const {
  return look_up(sluice_tok_id_to_token, handle(), id);
}

std::optional<std::string> Tokenizer::token_bytes(int32_t id) const {
  return look_up(sluice_tok_token_bytes, handle(), id);
}

int32_t Tokenizer::vocab_size() const {
  return static_cast<int32_t>(sluice_tok_vocab_size(handle()));
}

const std::vector<AddedToken>& Tokenizer::added_tokens() const {
  return impl_->added;
}

std::vector<AddedToken> Tokenizer::special_tokens() const {
  std::vector<AddedToken> special;
  for (const AddedToken& token : impl_->added) {
    if (token.special) special.push_back(token);
  }
  return special;
}

const sluice_tok* Tokenizer::handle() const {
  return impl_->handle.get();
}

struct DetokenizerStream::Impl {
  StreamHandle handle;
  BridgeBytes text;  // reused by every step
  BridgeBytes err;
};

DetokenizerStream::DetokenizerStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DetokenizerStream::~DetokenizerStream() = default;
DetokenizerStream::DetokenizerStream(DetokenizerStream&&) noexcept = default;
DetokenizerStream& DetokenizerStream::operator=(DetokenizerStream&&) noexcept = default;

Result<DetokenizerStream> DetokenizerStream::create(const Tokenizer& tokenizer,
                                                    bool skip_special,
                                                    std::span<const int32_t> prompt) {
  SLUICE_TRY(const auto ids, to_bridge_ids(prompt));
  auto impl = std::make_unique<Impl>();
  sluice_stream* raw = nullptr;
  const int32_t status = sluice_stream_new(tokenizer.handle(),
                                           skip_special ? SLUICE_DECODE_SKIP_SPECIAL : 0,
                                           ids.data(),
                                           ids.size(),
                                           &raw,
                                           impl->err.out());
  SLUICE_TRY_STATUS(bridge_status(status, impl->err, ErrorCode::kInternal));
  impl->handle.reset(raw);
  return DetokenizerStream(std::move(impl));
}

Result<std::string> DetokenizerStream::step(int32_t id) {
  if (id < 0) return make_error(ErrorCode::kInvalidArgument, "token id {} is negative", id);
  const int32_t status = sluice_stream_step(
      impl_->handle.get(), static_cast<uint32_t>(id), impl_->text.out(), impl_->err.out());
  SLUICE_TRY_STATUS(bridge_status(status, impl_->err, ErrorCode::kInternal));
  return impl_->text.str();
}

Result<std::string> DetokenizerStream::finish() {
  const int32_t status =
      sluice_stream_finish(impl_->handle.get(), impl_->text.out(), impl_->err.out());
  SLUICE_TRY_STATUS(bridge_status(status, impl_->err, ErrorCode::kInternal));
  return impl_->text.str();
}

}  // namespace sluice::text
