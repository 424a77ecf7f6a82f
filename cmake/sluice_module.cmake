# sluice_module(<folder> SOURCES <files...> [DEPS <targets...>] [TEST_DEPS <targets...>])
#
# One folder of src/ is one static library sluice_<folder>. Sources are listed by hand; tests are
# every *_test.cpp below the folder, so that none can be forgotten, in one binary
# sluice_<folder>_tests whose cases carry the ctest label "unit" (suites whose name starts with
# "Contract" carry "contract").
function(sluice_module folder)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;TEST_DEPS" ${ARGN})
  set(target sluice_${folder})
  add_library(${target} STATIC ${M_SOURCES})
  target_link_libraries(${target} PUBLIC sluice_options ${M_DEPS})

  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(SLUICE_BUILD_TESTS AND tests)
    add_executable(${target}_tests ${tests})
    target_link_libraries(${target}_tests PRIVATE ${target} ${M_TEST_DEPS} GTest::gtest_main)
    target_compile_definitions(${target}_tests PRIVATE
      SLUICE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" SLUICE_BINARY_DIR="${CMAKE_BINARY_DIR}")
    gtest_discover_tests(${target}_tests DISCOVERY_MODE PRE_TEST
      TEST_FILTER "-Contract*" PROPERTIES LABELS unit TIMEOUT 120)
    gtest_discover_tests(${target}_tests DISCOVERY_MODE PRE_TEST
      TEST_FILTER "Contract*" TEST_LIST ${target}_contract PROPERTIES LABELS contract TIMEOUT 300)
  endif()
endfunction()
