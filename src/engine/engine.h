// The engine: one model, one thread that owns it. MLX-free by pimpl, so that the layers above never
// see a tensor.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/types.h"

namespace sluice::engine {

// The tokens of one conversation whose keys and values stay in the cache between requests. May
// outlive its Engine (it is then empty for good). Any thread, but not from within a callback.
class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Gives the cache pages back; the next request computes its prompt from the start.
  void clear();
  // Positions in the cache.
  int cached_tokens() const;

 private:
  friend class Engine;
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Thread safe: calls are queued to the engine thread and served one after the other, each blocking
// its caller. Calling it from one of its own callbacks is an error (kInternal).
class Engine {
 public:
  // Opens the checkpoint, loads its weights, makes the cache. Errors: those of
  // loader::open_checkpoint and models::load_model, kInvalidArgument for options that are unknown
  // or contradict each other.
  static Result<std::unique_ptr<Engine>> load(const EngineOptions& options);
  ~Engine();

  const ModelInfo& info() const;

  // A session of this engine, empty.
  std::unique_ptr<Session> new_session();

  // Generates one output. on_token may be empty. With a session, a prompt that starts with all
  // tokens of the session computes only the rest (in fast mode the result is the same to the bit);
  // any other prompt starts afresh. Afterwards the session holds the prompt and the output but its
  // last token.
  //
  // Errors: kInvalidArgument (empty prompt, ids out of range, sampling values, prompt + max_tokens
  // beyond context or cache: with both numbers), kInternal (the model or the callback failed; a
  // session is then empty). Idle sessions give their pages up, the oldest first, if the request
  // needs them.
  Result<GenerateResult> generate(const GenerateRequest& request,
                                  const TokenCallback& on_token = {},
                                  Session* session = nullptr);

  // What check mode saw so far, and what ran.
  std::vector<KernelReport> kernel_report() const;

 private:
  friend class Session;
  struct State;
  explicit Engine(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace sluice::engine
