# sluice_module(<folder> SOURCES <files...> [DEPS <targets...>] [TEST_DEPS <targets...>])
#
# One folder of src/ is one static library sluice_<folder>. Sources are listed by hand; tests are
# every *_test.cpp below the folder, so that none can be forgotten, in one binary
# sluice_<folder>_tests whose cases are ctest tests <folder>.<Suite>.<Case> with the label "unit"
# (suites whose name starts with "Contract" have "contract"; so do their parameterized instances).
function(sluice_module folder)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;TEST_DEPS" ${ARGN})
  set(target sluice_${folder})
  add_library(${target} STATIC ${M_SOURCES})
  target_link_libraries(${target} PUBLIC sluice_options ${M_DEPS})
  set_property(GLOBAL APPEND PROPERTY SLUICE_MODULES ${target})

  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(SLUICE_BUILD_TESTS AND tests)
    add_executable(${target}_tests ${tests})
    set_property(GLOBAL APPEND PROPERTY SLUICE_UNIT_TESTS ${target}_tests)
    target_link_libraries(${target}_tests PRIVATE ${target} ${M_TEST_DEPS} GTest::gmock
      GTest::gtest_main)
    target_compile_definitions(${target}_tests PRIVATE
      SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SLUICE_BINARY_DIR="${CMAKE_BINARY_DIR}")
    # The cases are listed when ctest runs and not when the binary is built, which also works for
    # sanitizer builds and needs no second link if listing fails.
    set(contract "Contract*:*/Contract*")
    gtest_discover_tests(${target}_tests DISCOVERY_MODE PRE_TEST
      TEST_PREFIX "${folder}." TEST_FILTER "-${contract}"
      PROPERTIES LABELS unit TIMEOUT ${SLUICE_TIMEOUT_unit})
    gtest_discover_tests(${target}_tests DISCOVERY_MODE PRE_TEST
      TEST_PREFIX "${folder}." TEST_FILTER "${contract}" TEST_LIST ${target}_contract
      PROPERTIES LABELS contract TIMEOUT ${SLUICE_TIMEOUT_contract})
  endif()
endfunction()
