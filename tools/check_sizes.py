#!/usr/bin/env python3
"""Checks the sizes that keep files and functions readable.

A file over 900 lines fails the check, one over 500 and a function over 80 lines or 6 parameters
are warned about. An exception is a line in EXCEPTIONS with its reason. Exit status 1 on a failure.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

WARN_FILE, FAIL_FILE, WARN_FUNCTION, WARN_PARAMETERS = 500, 900, 80, 6
FOLDERS = ("src", "bridge", "tests", "tools", "bench", "cmake", "web")
CPP = {".h", ".cpp", ".cu", ".cuh"}
SUFFIXES = CPP | {".rs", ".py", ".sh", ".cmake", ".js", ".css", ".html"}
SKIPPED_FOLDERS = {"target", "__pycache__", "data", "golden"}

# Path from the root -> why it may be longer than FAIL_FILE.
EXCEPTIONS: dict[str, str] = {}

# Comments, strings and character literals, whose braces are no braces.
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
NOT_A_FUNCTION = re.compile(r"^(namespace|class|struct|enum|union|extern)\b|\bnamespace[\s\w:]*$|=\s*$|^\s*$")


def without_noise(text: str) -> str:
    """The same lines with comments and literals blanked."""
    return NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def count_parameters(head: str) -> int:
    """Commas at the top level of the first parenthesis of a function head, plus one."""
    start = head.find("(")
    depth, count = 0, 0
    for index, char in enumerate(head[start:], start):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and head[index - 1] != "-"):
            depth -= 1
            if depth == 0 and char == ")":
                return count + 1 if head[start + 1 : index].strip() else 0
        elif char == "," and depth == 1:
            count += 1
    return 0


def functions(text: str):
    """(first line, lines, parameters, name) of each function body at namespace or class level.

    A brace opens a function if a parenthesis stands between it and the statement before it and the
    text does not begin as a namespace or a type does; braces inside a function are not looked at.
    Preprocessor lines are skipped, so long macros are not seen.
    """
    text = re.sub(
        r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), without_noise(text), flags=re.MULTILINE
    )
    depth, inside, start, head_start = 0, None, 0, 0
    for match in re.finditer(r"[{};]", text):
        char, place = match[0], match.start()
        if char == "{":
            head = re.sub(r"^\s*(public|private|protected):", "", text[head_start:place]).strip()
            head = re.sub(r"^template\s*<[^{]*?>\s*(?=\w)", "", head)
            if inside is None and "(" in head and not NOT_A_FUNCTION.search(head):
                inside = depth
                start = text.count("\n", 0, place) + 1
                name = re.search(r"([\w:~]+|operator\S+)\s*\(", head)
                found = (start, count_parameters(head), name[1] if name else "?")
            depth += 1
        elif char == "}":
            depth -= 1
            if inside is not None and depth == inside:
                end = text.count("\n", 0, place) + 1
                yield found[0], end - start + 1, found[1], found[2]
                inside = None
        if inside is None:
            head_start = place + 1


def check(root: Path) -> tuple[list[str], list[str]]:
    """(failures, warnings) of the tree."""
    failures, warnings = [], []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SUFFIXES or SKIPPED_FOLDERS & set(path.parts):
                continue
            name, text = path.relative_to(root).as_posix(), path.read_text()
            lines = text.count("\n")
            if lines > FAIL_FILE and name not in EXCEPTIONS:
                failures.append(f"{name}: {lines} lines; {FAIL_FILE} is the limit: split it")
            elif lines > WARN_FILE:
                warnings.append(f"{name}: {lines} lines; aim at 100-250")
            if path.suffix not in CPP:
                continue
            for first, length, parameters, function in functions(text):
                if length > WARN_FUNCTION:
                    warnings.append(f"{name}:{first}: {function}() has {length} lines: split it")
                if parameters > WARN_PARAMETERS:
                    warnings.append(f"{name}:{first}: {function}() has {parameters} parameters")
    return failures, warnings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    failures, warnings = check(parser.parse_args().root)
    for warning in warnings:
        print(f"warning: {warning}")
    for failure in failures:
        print(f"error: {failure}")
    print(f"sizes: {len(failures)} errors, {len(warnings)} warnings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
