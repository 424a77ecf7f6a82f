# The Rust bridge is added by its owner (bridge/CMakeLists.txt) once it exists.
if(EXISTS ${CMAKE_SOURCE_DIR}/bridge/CMakeLists.txt)
  add_subdirectory(bridge)
endif()
