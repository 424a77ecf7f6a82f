# Versions of what is not a system package. tools/setup.py fetches by the same file's numbers.
set(SLUICE_MLX_VERSION 0.32.4)
