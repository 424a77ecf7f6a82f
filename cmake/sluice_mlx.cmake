# MLX as its wheel ships it, unpacked by tools/setup.py into .deps/mlx. Imported as SYSTEM so that
# -Werror is for our code only.
set(SLUICE_MLX_ROOT ${CMAKE_SOURCE_DIR}/.deps/mlx CACHE PATH "The mlx/ folder of the unpacked wheel")
if(NOT EXISTS ${SLUICE_MLX_ROOT}/lib/libmlx.so)
  message(FATAL_ERROR "MLX ${SLUICE_MLX_VERSION} is not in ${SLUICE_MLX_ROOT}: run 'make setup'")
endif()
add_library(sluice_mlx INTERFACE)
target_include_directories(sluice_mlx SYSTEM INTERFACE ${SLUICE_MLX_ROOT}/include)
target_link_libraries(sluice_mlx INTERFACE ${SLUICE_MLX_ROOT}/lib/libmlx.so)
