#include "text/grammar.h"

#include "text/bridge.h"

namespace sluice::text {

struct GrammarMatcher::Impl {
  BridgeHandle<sluice_matcher, sluice_matcher_free> handle;
  BridgeBytes err;
  size_t accepted = 0;  // what rollback can take back

  Status status(int32_t status, ErrorCode otherwise) {
    return bridge_status(status, err, otherwise);
  }
};

struct GrammarFactory::Impl {
  BridgeHandle<sluice_grammar, sluice_grammar_free> handle;
  int32_t n_vocab = 0;
};

GrammarMatcher::GrammarMatcher(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrammarMatcher::~GrammarMatcher() = default;
GrammarMatcher::GrammarMatcher(GrammarMatcher&&) noexcept = default;
GrammarMatcher& GrammarMatcher::operator=(GrammarMatcher&&) noexcept = default;

Status GrammarMatcher::fill_mask(std::span<uint32_t> words) {
  return impl_->status(
      sluice_matcher_mask(impl_->handle.get(), words.data(), words.size(), impl_->err.out()),
      ErrorCode::kResourceExhausted);
}

Status GrammarMatcher::accept(int32_t id) {
  // A negative id is above every vocabulary as the bridge's unsigned one.
  SLUICE_TRY_STATUS(impl_->status(
      sluice_matcher_commit(impl_->handle.get(), static_cast<uint32_t>(id), impl_->err.out()),
      ErrorCode::kInvalidArgument));
  ++impl_->accepted;
  return {};
}

Status GrammarMatcher::rollback(size_t n) {
  if (n > impl_->accepted) {
    return make_error(ErrorCode::kInvalidArgument,
                      "cannot roll back {} tokens: {} were accepted",
                      n,
                      impl_->accepted);
  }
  SLUICE_TRY_STATUS(impl_->status(sluice_matcher_rollback(impl_->handle.get(), n, impl_->err.out()),
                                  ErrorCode::kInternal));
  impl_->accepted -= n;
  return {};
}

Result<bool> GrammarMatcher::is_done() {
  sluice_matcher_state state{};
  SLUICE_TRY_STATUS(
      impl_->status(sluice_matcher_state_get(impl_->handle.get(), &state, impl_->err.out()),
                    ErrorCode::kResourceExhausted));
  return state.stopped;
}

Result<bool> GrammarMatcher::is_accepting() {
  sluice_matcher_state state{};
  SLUICE_TRY_STATUS(
      impl_->status(sluice_matcher_state_get(impl_->handle.get(), &state, impl_->err.out()),
                    ErrorCode::kResourceExhausted));
  return state.accepting;
}

Result<std::vector<int32_t>> GrammarMatcher::forced() {
  BridgeIds ids;
  SLUICE_TRY_STATUS(
      impl_->status(sluice_matcher_forced(impl_->handle.get(), ids.out(), impl_->err.out()),
                    ErrorCode::kResourceExhausted));
  return ids.vector();
}

Result<size_t> GrammarMatcher::try_accept(std::span<const int32_t> ids) {
  const std::vector<uint32_t> list(ids.begin(), ids.end());
  size_t taken = 0;
  SLUICE_TRY_STATUS(
      impl_->status(sluice_matcher_try_commit(
                        impl_->handle.get(), list.data(), list.size(), &taken, impl_->err.out()),
                    ErrorCode::kResourceExhausted));
  impl_->accepted += taken;
  return taken;
}

Result<size_t> GrammarMatcher::count_allowed(std::span<const int32_t> ids) {
  const std::vector<uint32_t> list(ids.begin(), ids.end());
  size_t allowed = 0;
  SLUICE_TRY_STATUS(
      impl_->status(sluice_matcher_check(
                        impl_->handle.get(), list.data(), list.size(), &allowed, impl_->err.out()),
                    ErrorCode::kResourceExhausted));
  return allowed;
}

Status GrammarMatcher::reset() {
  SLUICE_TRY_STATUS(impl_->status(sluice_matcher_reset(impl_->handle.get(), impl_->err.out()),
                                  ErrorCode::kInternal));
  impl_->accepted = 0;
  return {};
}

Result<GrammarMatcher> GrammarMatcher::deep_copy() const {
  auto copy = std::make_unique<Impl>();
  sluice_matcher* raw = nullptr;
  SLUICE_TRY_STATUS(copy->status(sluice_matcher_clone(impl_->handle.get(), &raw, copy->err.out()),
                                 ErrorCode::kInternal));
  copy->handle.reset(raw);
  copy->accepted = impl_->accepted;
  return GrammarMatcher(std::move(copy));
}

Result<GrammarFactory> GrammarFactory::create(const Tokenizer& tokenizer,
                                              int32_t n_vocab,
                                              std::span<const int32_t> eos_ids,
                                              const GrammarLimits& limits) {
  if (n_vocab <= 0) {
    return make_error(ErrorCode::kInvalidArgument, "n_vocab is {}; it must be positive", n_vocab);
  }
  const std::vector<uint32_t> eos(eos_ids.begin(), eos_ids.end());
  const sluice_grammar_limits raw_limits = {limits.max_grammar_size,
                                            limits.max_items_in_row,
                                            limits.max_lexer_states,
                                            limits.initial_lexer_fuel,
                                            limits.step_lexer_fuel,
                                            limits.step_max_items};
  BridgeBytes err;
  sluice_grammar* raw = nullptr;
  const int32_t status = sluice_grammar_new(tokenizer.handle(),
                                            static_cast<size_t>(n_vocab),
                                            eos.data(),
                                            eos.size(),
                                            &raw_limits,
                                            &raw,
                                            err.out());
  SLUICE_TRY_STATUS(bridge_status(status, err, ErrorCode::kInvalidArgument));
  auto impl = std::make_shared<Impl>();
  impl->handle.reset(raw);
  impl->n_vocab = n_vocab;
  return GrammarFactory(std::move(impl));
}

Result<GrammarMatcher> GrammarFactory::compile(uint32_t kind, std::string_view source) const {
  auto matcher = std::make_unique<GrammarMatcher::Impl>();
  sluice_matcher* raw = nullptr;
  const int32_t status = sluice_grammar_compile(
      impl_->handle.get(), kind, to_bridge(source), &raw, matcher->err.out());
  SLUICE_TRY_STATUS(matcher->status(status, ErrorCode::kInvalidArgument));
  matcher->handle.reset(raw);
  return GrammarMatcher(std::move(matcher));
}

Result<GrammarMatcher> GrammarFactory::from_json_schema(std::string_view schema) const {
  return compile(SLUICE_GRAMMAR_JSON_SCHEMA, schema);
}

Result<GrammarMatcher> GrammarFactory::from_regex(std::string_view regex) const {
  return compile(SLUICE_GRAMMAR_REGEX, regex);
}

Result<GrammarMatcher> GrammarFactory::from_lark(std::string_view grammar) const {
  return compile(SLUICE_GRAMMAR_LARK, grammar);
}

int32_t GrammarFactory::n_vocab() const {
  return impl_->n_vocab;
}

}  // namespace sluice::text
