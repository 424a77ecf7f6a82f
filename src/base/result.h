// Errors as values: Result<T> for everything that user input can cause (files, flags, requests),
// and the one exception type that tensor code throws. g++ 12 has no std::expected in C++20 mode.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

enum class ErrorCode {
  kInvalidArgument,    // the caller's value is wrong
  kNotFound,           // a file, tensor or name that should be there is not
  kUnsupported,        // well formed, but sluice cannot do it
  kCorruptFile,        // a file that breaks its own format
  kIo,                 // the operating system refused
  kResourceExhausted,  // would fit at another time or with another limit
  kCancelled,          // the caller asked to stop
  kInternal,           // a broken invariant: a bug in sluice
};

// "invalid_argument", "not_found", ...: stable names for logs and API errors.
const char* error_code_name(ErrorCode code);

// What went wrong, where, and how to mend it, in one message fit for a person.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
};

// The one exception type of tensor code (shape errors, failed invariants). Caught at the walls
// that design section 4 names, and by SLUICE_CATCH_TO_RESULT-style wrappers at file loading.
class Exception : public std::runtime_error {
 public:
  explicit Exception(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

// A value or an Error. Reading the wrong side throws Exception(kInternal).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    require_ok();
    return std::get<0>(state_);
  }
  const T& value() const& {
    require_ok();
    return std::get<0>(state_);
  }
  T&& value() && {
    require_ok();
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  const Error& error() const {
    if (ok()) throw Exception({ErrorCode::kInternal, "Result::error() on a value"});
    return std::get<1>(state_);
  }

 private:
  void require_ok() const {
    if (!ok()) throw Exception(std::get<1>(state_));
  }
  std::variant<T, Error> state_;
};

// Success or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (ok()) throw Exception({ErrorCode::kInternal, "Status::error() on success"});
    return *error_;
  }
  // For callers that hold no Result of their own: throws Exception if this is an error.
  void or_throw() const {
    if (error_) throw Exception(*error_);
  }

 private:
  std::optional<Error> error_;
};

template <class... Args>
Error make_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class... Args>
[[noreturn]] void throw_error(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Exception(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

}  // namespace sluice

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)

// SLUICE_TRY(auto x, expr): x = the value of expr, or return its error from this function.
#define SLUICE_TRY(declaration, expression) \
  SLUICE_TRY_INNER(declaration, expression, SLUICE_CONCAT(sluice_try_, __LINE__))
#define SLUICE_TRY_INNER(declaration, expression, name) \
  auto name = (expression);                             \
  if (!name.ok()) return name.error();                  \
  declaration = std::move(name).value()

// SLUICE_TRY_STATUS(expr): return expr's error from this function, if it has one.
#define SLUICE_TRY_STATUS(expression)                      \
  do {                                                     \
    auto sluice_status = (expression);                     \
    if (!sluice_status.ok()) return sluice_status.error(); \
  } while (false)

// A broken invariant: throws Exception(kInternal) with the place and the message (fmt format).
#define SLUICE_CHECK(condition, ...)                        \
  do {                                                      \
    if (!(condition)) {                                     \
      ::sluice::throw_error(::sluice::ErrorCode::kInternal, \
                            "{}:{}: check failed: {}: {}",  \
                            __FILE__,                       \
                            __LINE__,                       \
                            #condition,                     \
                            ::fmt::format(__VA_ARGS__));    \
    }                                                       \
  } while (false)
