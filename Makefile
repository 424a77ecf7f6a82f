# Entry points for people and for CI; `make help` lists them. The build itself is CMake + Ninja
# (CMakePresets.json), what it needs is fetched by tools/setup.py, once per change of its pins.
#
# Text that the user gives (PROMPT, MODEL, LABEL, HOST, PORT) goes to the programs through the environment and
# never through make's or the shell's expansion, so any character is safe in it.

MODEL ?= .deps/models/SmolLM2-135M-Instruct.Q4_1.gguf
PYTHON ?= python3
override MODEL := $(value MODEL)
# The small hybrid that lies in the repository.
ifeq ($(MODEL),demo)
override MODEL := models/sluice-demo-66m
endif
override PROMPT := $(value PROMPT)
override LABEL := $(value LABEL)
# Shells have a HOST of their own: only one given to make counts.
ifneq ($(origin HOST),command line)
override HOST := 127.0.0.1
endif
ifneq ($(origin PORT),command line)
override PORT := 8080
endif
override HOST := $(value HOST)
override PORT := $(value PORT)
export MODEL PROMPT LABEL HOST PORT
# Lets a second clone reuse what the first one compiled: paths below here count as relative.
export CCACHE_BASEDIR ?= $(CURDIR)
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup build chat serve test bench asan tsan install clean distclean format

BIN := build/release/bin/sluice
# Set-up is done again when one of these is newer than the stamp of the last one.
SETUP := tools/setup.py tools/apt-packages.txt cmake/sluice_pins.cmake
# Messages of set-up and build go to stderr: what `make chat` prints on stdout is the answer.
build_target = { cmake --build --preset $(1) $(if $(2),--target $(2)); } >&2

help:
	@echo 'make chat                    chat with the default model (all set-up is done first)'
	@echo 'make chat PROMPT="..."       answer once and exit'
	@echo 'make chat MODEL=path         another model: a GGUF file or an MLX safetensors folder'
	@echo 'make chat MODEL=demo         the small hybrid of this repository, models/sluice-demo-66m'
	@echo 'make serve                   the HTTP server on it (MODEL=, HOST=, PORT=)'
	@echo 'make build                   build everything: build/release'
	@echo 'make test                    all tests but soak'
	@echo 'make test LABEL=contract     one label: unit, parity, contract, e2e or soak'
	@echo 'make bench                   benchmarks'
	@echo 'make asan, make tsan         the tests under AddressSanitizer + UBSan, ThreadSanitizer'
	@echo 'make setup                   all set-up and nothing else'
	@echo 'make install PREFIX=folder   a tree that can be moved and packed'
	@echo 'make format                  clang-format the sources'
	@echo 'make clean, make distclean   remove build/; and .deps/ too'

# ---- set-up; it touches the stamps itself: that of the tests' set-up is all three

.deps/build.stamp: $(SETUP)
	@$(PYTHON) tools/setup.py >&2
.deps/model.stamp: $(SETUP)
	@$(PYTHON) tools/setup.py --model >&2
.deps/tests.stamp: $(SETUP) tests/requirements.txt
	@$(PYTHON) tools/setup.py --tests >&2

setup: .deps/tests.stamp

# The default model is fetched only if it is the one asked for.
CHAT_SETUP := $(if $(filter .deps/models/%,$(MODEL)),.deps/model.stamp,.deps/build.stamp)

# ---- build: Ninja itself runs CMake again when a CMakeLists.txt changes, but not for a preset

build/%/.configured: CMakePresets.json .deps/build.stamp
	@cmake --preset $* >&2
	@touch $@

build: build/release/.configured
	@$(call build_target,release)

# ---- run

chat: $(CHAT_SETUP) build/release/.configured
	@$(call build_target,release,sluice)
	@if [ -n "$$PROMPT" ]; then exec $(BIN) run --model="$$MODEL" --chat --prompt="$$PROMPT"; \
	 else exec $(BIN) chat --model="$$MODEL"; fi

serve: $(CHAT_SETUP) build/release/.configured
	@$(call build_target,release,sluice)
	@exec $(BIN) serve --model="$$MODEL" --host="$$HOST" --port="$$PORT"

# ---- check and measure

# --no-tests=error: a misspelt label is an error and not a success without a test.
test: .deps/tests.stamp build/release/.configured
	@$(call build_target,release)
	@cd build/release && if [ -n "$$LABEL" ]; then select=(-L "^$$LABEL\$$"); else select=(-LE '^soak$$'); fi && \
	 ctest --output-on-failure --no-tests=error -j2 "$${select[@]}"

# tools/sanitize.sh holds the sanitizers' options and the folders that each of them is worth for.
asan tsan: .deps/tests.stamp
	@$(MAKE) --no-print-directory build/$@/.configured
	@$(call build_target,$@,$@_tests)
	@bash tools/sanitize.sh $@

# The micro benchmarks, then sluice beside llama.cpp (built once) on the default model.
bench: .deps/tests.stamp build/release/.configured
	@$(call build_target,release)
	@for program in build/release/bench/micro/*_bench; do "$$program"; done
	@.deps/venv/bin/python3 bench/peers.py

install: .deps/build.stamp build/release/.configured
	@$(call build_target,release)
	@cmake --install build/release --prefix "$${PREFIX:?say where: make install PREFIX=folder}"

format: .deps/tests.stamp
	@$(PYTHON) tools/check_format.py --fix

clean:
	rm -rf build bridge/target
distclean: clean
	rm -rf .deps
