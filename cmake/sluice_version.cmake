# Gives src/base/version.cpp, and no other source, what it reports: one file to recompile when the
# commit changes. The revision is read when CMake runs.
find_package(Git QUIET)
set(SLUICE_REVISION unknown)
if(GIT_FOUND AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=10 --exclude=*
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE revision RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(SLUICE_REVISION ${revision})
  endif()
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/version.cpp TARGET_DIRECTORY sluice_base
  PROPERTIES COMPILE_DEFINITIONS
  "SLUICE_VERSION=\"${PROJECT_VERSION}\";SLUICE_REVISION=\"${SLUICE_REVISION}\";SLUICE_MLX_VERSION=\"${SLUICE_MLX_VERSION}\"")
