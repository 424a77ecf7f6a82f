# Labels, time limits and helpers of the tests that cross folders (tests/<folder>/CMakeLists.txt).
#
# Every ctest test has exactly one of these labels and a time limit; the test checks.labels fails
# for one that has not. Limits in seconds are for one test on two busy cores:
set(SLUICE_TEST_LABELS unit parity contract e2e soak)
set(SLUICE_TIMEOUT_unit 120)      # one folder's code; no network, no oracle
set(SLUICE_TIMEOUT_parity 600)    # against an oracle in Python (mlx-lm, tokenizers, transformers)
set(SLUICE_TIMEOUT_contract 300)  # bit-for-bit exactness (docs/numerics.md)
set(SLUICE_TIMEOUT_e2e 300)       # the built or installed binary as a user runs it
set(SLUICE_TIMEOUT_soak 3600)     # long fuzzing, KL, speed against peers: not in `make test`
# A sanitizer makes our own code 2 to 15 times slower.
if(NOT SLUICE_SANITIZER STREQUAL "")
  foreach(label IN LISTS SLUICE_TEST_LABELS)
    math(EXPR SLUICE_TIMEOUT_${label} "${SLUICE_TIMEOUT_${label}} * 5")
  endforeach()
endif()

set(SLUICE_TEST_PYTHON ${CMAKE_SOURCE_DIR}/.deps/venv/bin/python3 CACHE FILEPATH
  "Python with the packages of tests/requirements.txt")
set(SLUICE_DEFAULT_MODEL ${CMAKE_SOURCE_DIR}/.deps/models/${SLUICE_MODEL_FILE} CACHE FILEPATH
  "The default model, for tests that need real weights")

# sluice_test(<name> LABEL <label> COMMAND <command...> [TIMEOUT <seconds>])
#
# A ctest test whose command finds the places it needs in its environment: SLUICE_SOURCE_DIR,
# SLUICE_BINARY_DIR, SLUICE_BIN (the sluice binary), SLUICE_DEFAULT_MODEL (a GGUF file),
# SLUICE_LLAMA_CPP (llama.cpp's source: vocabularies, templates) and SLUICE_TEST_PYTHON.
# Compilation by MLX is off on both sides of every comparison (MLX_DISABLE_COMPILE): on CPU it
# would run g++ during the test, and its bits depend on that g++.
function(sluice_test name)
  cmake_parse_arguments(T "" "LABEL;TIMEOUT" "COMMAND" ${ARGN})
  if(NOT T_LABEL IN_LIST SLUICE_TEST_LABELS OR NOT T_COMMAND)
    message(FATAL_ERROR "sluice_test(${name}): needs COMMAND and LABEL, one of ${SLUICE_TEST_LABELS}")
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT ${SLUICE_TIMEOUT_${T_LABEL}})
  endif()
  add_test(NAME ${name} COMMAND ${T_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${T_LABEL} TIMEOUT ${T_TIMEOUT} ENVIRONMENT
    "SLUICE_SOURCE_DIR=${CMAKE_SOURCE_DIR};SLUICE_BINARY_DIR=${CMAKE_BINARY_DIR};SLUICE_BIN=${CMAKE_BINARY_DIR}/bin/sluice;SLUICE_DEFAULT_MODEL=${SLUICE_DEFAULT_MODEL};SLUICE_LLAMA_CPP=${CMAKE_SOURCE_DIR}/.deps/llama.cpp;SLUICE_TEST_PYTHON=${SLUICE_TEST_PYTHON};MLX_DISABLE_COMPILE=1;PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${CMAKE_SOURCE_DIR}")
endfunction()

# sluice_pytest(<name> LABEL <label> FILE <test_x.py> [TIMEOUT <seconds>])
#
# A file of pytest cases as one ctest test. pytest fails when it collects no case.
function(sluice_pytest name)
  cmake_parse_arguments(P "" "LABEL;FILE;TIMEOUT" "" ${ARGN})
  get_filename_component(file ${P_FILE} ABSOLUTE)
  sluice_test(${name} LABEL ${P_LABEL} TIMEOUT ${P_TIMEOUT}
    COMMAND ${SLUICE_TEST_PYTHON} -m pytest -q -p no:cacheprovider --rootdir=${CMAKE_SOURCE_DIR} ${file})
endfunction()
