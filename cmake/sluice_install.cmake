# cmake --install: a tree that can be moved, packed and run from any place.
#
#   bin/sluice                    looks for its libraries beside itself ($ORIGIN/../lib/...)
#   lib/mlx/lib/libmlx.so         the wheel's own layout, since its RPATH is ../../mlx_cpu.libs;
#   lib/mlx_cpu.libs/             another build of MLX (CUDA) can be put in its place
#   lib/libfmt.so*, libspdlog.so* the Debian libraries that are linked dynamically
#   share/sluice/licenses/        our licence and that of everything in the tree
#
# What it still wants of the system is glibc and libstdc++ of the machine it was built on or newer.
if(NOT TARGET sluice)
  return()
endif()
include(GNUInstallDirs)
set_target_properties(sluice PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin
  INSTALL_RPATH "$ORIGIN/../lib;$ORIGIN/../lib/mlx/lib")
install(TARGETS sluice RUNTIME DESTINATION bin)
install(IMPORTED_RUNTIME_ARTIFACTS fmt::fmt spdlog::spdlog LIBRARY DESTINATION lib)
install(FILES ${SLUICE_MLX_ROOT}/lib/libmlx.so DESTINATION lib/mlx/lib)
install(DIRECTORY ${SLUICE_MLX_ROOT}/../mlx_cpu.libs DESTINATION lib)

set(licenses share/sluice/licenses)
install(FILES LICENSE NOTICE DESTINATION ${licenses})
install(DIRECTORY licences/ DESTINATION ${licenses} PATTERN README.md EXCLUDE)
install(DIRECTORY ${SLUICE_MLX_ROOT}/../mlx_cpu.dist-info/licenses/ DESTINATION ${licenses}/mlx)
install(DIRECTORY ${SLUICE_MLX_ROOT}/../mlx_cpu.dist-info/sboms DESTINATION ${licenses}/mlx)
get_property(rust_licenses GLOBAL PROPERTY SLUICE_RUST_LICENSES)
if(rust_licenses)
  install(FILES ${rust_licenses} DESTINATION ${licenses})
endif()
foreach(package libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libboost-dev)
  # Each Debian package has this file; on another system the packager's own copies take its place.
  install(FILES /usr/share/doc/${package}/copyright DESTINATION ${licenses}
    RENAME ${package}.copyright OPTIONAL)
endforeach()
