// The engine: one model, one thread that owns it, and the requests that share its passes. MLX-free
// by pimpl, so that the layers above never see a tensor.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/types.h"

namespace sluice::engine {

// Who hears of one request. The engine calls it on its own thread, between two passes that other
// requests wait for: be quick, and call no member of the engine but submit() and load().
class Sink {
 public:
  virtual ~Sink() = default;

  // After every pass that has more of the prompt to follow; tokens computed and tokens of the
  // prompt. Must not throw.
  virtual void on_prefill(int /*done*/, int /*total*/) {}
  // For every token. False ends the request with kStop (a stop string was seen). What it throws
  // ends the request with kInternal.
  virtual bool on_token(const TokenEvent& event) = 0;
  // Looked at before every pass, on any thread: true ends the request with kCancelled.
  virtual bool cancelled() const = 0;
  // The last call, once for every accepted request. kInternal: the model or the sink failed, or the
  // engine shuts down. Must not throw.
  virtual void on_end(Result<GenerateResult> result) = 0;
};

// Thread safe.
class Engine {
 public:
  // Opens the checkpoint, loads its weights, makes the cache. Errors: those of
  // loader::open_checkpoint and models::load_model, kInvalidArgument for options that are unknown
  // or contradict each other.
  static Result<std::unique_ptr<Engine>> load(const EngineOptions& options);
  // Ends all requests with kInternal ("the engine shuts down"). Not from a callback.
  ~Engine();

  const ModelInfo& info() const;

  // Queues one request and returns at once; the sink hears the rest. Requests share passes; in fast
  // mode none of them gets another bit than alone.
  //
  // Errors, the sink hears nothing then: kInvalidArgument (empty prompt, ids out of range, sampling
  // values, prompt + max_tokens beyond context or cache: with both numbers), kResourceExhausted
  // (the queue is full: with both counts).
  Status submit(const GenerateRequest& request, std::shared_ptr<Sink> sink);

  // submit() and wait. on_token may be empty, see Sink::on_token; cancel may be null, see
  // Sink::cancelled. Calling it from a callback is an error (kInternal): it would wait for ever.
  Result<GenerateResult> generate(const GenerateRequest& request,
                                  const TokenCallback& on_token = {},
                                  const std::atomic<bool>* cancel = nullptr);

  // Never blocked by a running pass.
  Load load() const;

  // What check mode saw so far, and what ran.
  std::vector<KernelReport> kernel_report() const;

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::engine
