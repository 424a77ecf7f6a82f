# Compiler settings of our own targets, carried by the interface target sluice_options.
add_library(sluice_options INTERFACE)
# -ffp-contract=off: a product and a sum are fused only where the source says so (std::fma or an
# intrinsic), else the bits of a kernel would depend on the compiler's mood.
target_compile_options(sluice_options INTERFACE -Wall -Wextra -Werror -ffp-contract=off)
# The -Wrestrict of g++ 12 (Debian 12) warns of a std::string that gets a literal (GCC bug 105651,
# mended in 13).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(sluice_options INTERFACE -Wno-restrict)
endif()
target_include_directories(sluice_options INTERFACE ${CMAKE_SOURCE_DIR}/src)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

if(SLUICE_SANITIZER STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(SLUICE_SANITIZER STREQUAL "thread")
  set(flags -fsanitize=thread -fno-omit-frame-pointer)
elseif(NOT SLUICE_SANITIZER STREQUAL "")
  message(FATAL_ERROR "SLUICE_SANITIZER is '${SLUICE_SANITIZER}'; it may be empty, address or thread")
endif()
if(flags)
  target_compile_options(sluice_options INTERFACE ${flags})
  target_link_options(sluice_options INTERFACE ${flags})
endif()

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SLUICE_CCACHE})
endif()
