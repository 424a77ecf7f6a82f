#!/usr/bin/env python3
"""Checks that no library below cli/ can end the process or print: neither in its object code (nm)
nor in its source.

The libraries are the static libraries given as arguments. Errors travel as Result or Exception
(base/result.h), messages go to the log (base/log.h). Exit status 1 if anything is found.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# As nm spells them; what the compiler makes of printf("x\n") and of fortified calls is included.
FORBIDDEN = {
    **dict.fromkeys(("exit", "_exit", "_Exit", "quick_exit", "abort"), "ends the process"),
    **dict.fromkeys(
        ("printf", "vprintf", "__printf_chk", "__vprintf_chk", "puts", "putchar", "stdout"), "prints"
    ),
    **dict.fromkeys(("_ZSt4cout", "_ZSt4cerr", "_ZSt4clog"), "prints (use base/log.h)"),
}
# A member function may be called abort (declared after "void"); nm tells it from the C function.
SOURCE = re.compile(
    r"(?<![\w:.>])(?<!void )(?:std::|::)?(exit|_exit|_Exit|quick_exit|abort|printf|puts|putchar)\s*\("
    r"|std::(cout|cerr|clog)\b|\bfmt::(print)\s*\(\s*(?=\"|stdout)|\b(stdout)\b"
)
TEST_FILE = re.compile(r"(^|_)test(_|\.)")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def check_library(library: Path) -> list[str]:
    answer = subprocess.run(
        ["nm", "--undefined-only", "--print-file-name", str(library)],
        capture_output=True,
        text=True,
        check=True,
    )
    problems = []
    for line in answer.stdout.splitlines():
        place, _, symbol = line.rpartition(" U ")
        name = symbol.strip().split("@")[0]
        if name in FORBIDDEN:
            member = ":".join(place.rstrip(": ").split(":")[-1:]).strip()
            problems.append(f"{library.name}({member}): calls {name}: {FORBIDDEN[name]}")
    return problems


def check_source(path: Path, name: str) -> list[str]:
    blank = lambda match: re.sub(r"[^\n]", " ", match[0]) if match[0][0] == "/" else '""'
    text = COMMENT_OR_STRING.sub(blank, path.read_text())
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = SOURCE.search(line)
        if match:
            found.append(f"{name}:{number}: {next(filter(None, match.groups()))}: not below cli/")
    return found


def check_sources(root: Path) -> list[str]:
    problems = []
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        in_library = not name.startswith("src/cli/") and not TEST_FILE.search(path.name)
        if in_library and path.suffix in {".h", ".cpp", ".cu"}:
            problems += check_source(path, name)
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("libraries", nargs="+", type=Path)
    arguments = parser.parse_args()
    problems = check_sources(arguments.root)
    for library in arguments.libraries:
        problems += check_library(library)
    for problem in problems:
        print(problem)
    print(f"symbols: {len(arguments.libraries)} libraries, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
