#!/usr/bin/env python3
"""Checks (or with --fix mends) that clang-format would change no C++ file of the tree.

The version is pinned (tests/requirements.txt), since each release formats a little differently.
Exit status 1 if a file would change, 2 if clang-format is not the pinned one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "bench", "tools", "bridge/include")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh"}


def pinned_version() -> str:
    text = (ROOT / "tests" / "requirements.txt").read_text()
    return re.search(r"^clang-format==(\S+)$", text, re.MULTILINE)[1]


def clang_format() -> str:
    """The pinned clang-format of the tests' Python; raises RuntimeError if it is another one."""
    for program in (Path(sys.executable).parent / "clang-format", ROOT / ".deps/venv/bin/clang-format"):
        if program.exists():
            answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
            if f"version {pinned_version()}" not in answer.stdout:
                raise RuntimeError(f"{program} is {answer.stdout.strip()}, not {pinned_version()}")
            return str(program)
    raise RuntimeError("no clang-format in .deps/venv: run 'make setup'")


def sources(root: Path) -> list[Path]:
    paths = (path for folder in FOLDERS for path in (root / folder).rglob("*"))
    # Headers that cbindgen writes keep its form: the drift check compares them byte for byte.
    return sorted(p for p in paths if p.suffix in SUFFIXES and p.name != "sluice_bridge.h")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--fix", action="store_true", help="rewrite the files")
    arguments = parser.parse_args()
    try:
        program = clang_format()
    except RuntimeError as error:
        print(error)
        return 2
    files = sources(arguments.root)
    if not files:
        print(f"no C++ file in {arguments.root}")
        return 1
    mode = ["-i"] if arguments.fix else ["--dry-run", "-Werror"]
    result = subprocess.run([program, "--style=file", *mode, *files], check=False)
    if result.returncode == 0:
        print(f"format: {len(files)} files")
        return 0
    print("format: 'make format' mends this")
    return 1


if __name__ == "__main__":
    sys.exit(main())
