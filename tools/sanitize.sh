#!/bin/bash
# Runs tests of a sanitizer build: tools/sanitize.sh asan|tsan (`make asan`, `make tsan`).
#
# Both test our own C++; libmlx.so, the Rust bridge and Debian's libraries are not instrumented.
#   asan  AddressSanitizer, LeakSanitizer and UBSan: label unit and every third contract test, but
#         those on the default model
#   tsan  ThreadSanitizer: all tests but soak of the folders that have threads of their own
#         (tests/CMakeLists.txt)
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:?usage: tools/sanitize.sh asan|tsan}
support=$PWD/tests/support

# check_initialization_order is off: gtest registers its cases in static initialisers by design.
export ASAN_OPTIONS="suppressions=$support/asan.supp:detect_stack_use_after_return=1:strict_string_checks=1"
export LSAN_OPTIONS="suppressions=$support/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="suppressions=$support/ubsan.supp:print_stacktrace=1"
# second_deadlock_stack shows both places of a lock-order inversion.
export TSAN_OPTIONS="suppressions=$support/tsan.supp:second_deadlock_stack=1:halt_on_error=0"

cd "build/$which"
options=(--output-on-failure --no-tests=error -j2)
# The checks of the sources (checks.*) and of the installed tree say the same in every build.
case $which in
  asan)
    status=0
    # A token of the default model takes seconds at -O1: its tests (engine, the service over it) run
    # here only when asked for, SLUICE_SANITIZE_ALL=1.
    slow='^(checks|engine\.EngineTest|engine\.Contract|chat\.EngineService)'
    [ "${SLUICE_SANITIZE_ALL:-0}" = 1 ] && slow='^checks\.'
    ctest "${options[@]}" -L '^unit$' -E "$slow" || status=$?
    ctest "${options[@]}" --no-tests=ignore -L '^contract$' -E "$slow" -I 1,,3 || status=$?
    exit $status
    ;;
  tsan)
    ctest "${options[@]}" -R '^(base|engine|text|chat|server)\.' -LE '^soak$'
    ;;
  *)
    echo "tools/sanitize.sh: '$which' is neither asan nor tsan" >&2
    exit 2
    ;;
esac
