#!/usr/bin/env python3
"""Checks every #include of src/ against layers.toml and prints what breaks a rule.

Rules: a folder includes only what its table entry allows; the table has no cycle and knows every
folder; no "../"; MLX and its internals only where the table says so, and a folder without MLX must
not reach it through a header of another folder either; a model family includes no other family.
Exit status 1 if anything is found.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
INTERNALS = re.compile(r"^mlx/backend/|^mlx/\w*primitives\.h$")
SOURCES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inc", ".inl"}


def folder_of(path: str) -> str:
    return path.split("/")[0]


def closure(folder: str, layers: dict, seen: set[str] | None = None) -> set[str]:
    """The folders that `folder` reaches through its own and others' entries."""
    seen = set() if seen is None else seen
    for entry in layers[folder]["may"]:
        name = folder_of(entry)
        if name not in seen:
            seen.add(name)
            closure(name, layers, seen)
    return seen


def check_table(layers: dict, order: list[str]) -> list[str]:
    problems = []
    for folder, rules in layers.items():
        if rules.get("mlx") not in ("none", "public", "internals"):
            problems.append(f"layers.toml: [{folder}] mlx is {rules.get('mlx')!r}")
        for entry in rules["may"]:
            if folder_of(entry) not in layers:
                problems.append(f"layers.toml: [{folder}] names {entry}, which has no entry")
    if problems:
        return problems
    for folder in layers:
        reached = closure(folder, layers)
        if folder in reached:
            problems.append(f"layers.toml: {folder} reaches itself: a cycle")
        if folder in order:
            above = set(order[order.index(folder) + 1 :])
            problems += [f"layers.toml: {folder} reaches {up} above it" for up in reached & above]
    return problems


class Checker:
    def __init__(self, root: Path, layers: dict):
        self.src = root / "src"
        self.layers = layers
        self.problems: list[str] = []
        self.includes: dict[str, list[tuple[int, str, str]]] = {}
        for path in sorted(self.src.rglob("*")):
            if path.suffix in SOURCES:
                self.includes[path.relative_to(self.src).as_posix()] = self.read(path)

    @staticmethod
    def read(path: Path) -> list[tuple[int, str, str]]:
        matches = (INCLUDE.match(line) for line in path.read_text().splitlines())
        return [(number, m[1], m[2]) for number, m in enumerate(matches, 1) if m]

    def check(self) -> list[str]:
        for file, includes in self.includes.items():
            folder = folder_of(file)
            if folder not in self.layers:
                self.problems.append(f"src/{file}: layers.toml has no entry [{folder}]")
                continue
            broken = [
                f"src/{file}:{number}: includes {target}: {problem}"
                for number, bracket, target in includes
                if (problem := self.judge(file, folder, bracket, target))
            ]
            self.problems += broken
            if self.layers[folder]["mlx"] == "none" and not broken:
                self.check_no_way_to_mlx(file)
        return self.problems

    def judge(self, file: str, folder: str, bracket: str, target: str) -> str | None:
        """Why `file` may not include `target`, or None if it may."""
        rules = self.layers[folder]
        if ".." in target.split("/"):
            return "paths start at src/, without ../"
        if target.startswith("mlx/"):
            if rules["mlx"] == "none":
                return f"{folder} knows no MLX"
            if INTERNALS.match(target) and rules["mlx"] != "internals":
                return "internals of MLX are for kernels/ only"
            return None
        for owner, other in self.layers.items():
            if owner != folder and any(target.startswith(p) for p in other.get("external", [])):
                return f"that is for {owner} only"
        if target not in self.includes:
            if bracket == '"' and folder_of(target) in self.layers:
                return "no such file in src/"
            return None
        return self.judge_own(file, folder, target)

    def judge_own(self, file: str, folder: str, target: str) -> str | None:
        other = folder_of(target)
        if other == folder:
            if self.layers[folder].get("families"):
                family, its = Path(file).parts[1:-1], Path(target).parts[1:-1]
                # models/*.cpp (the registry) lists the families; a family sees itself only.
                if family and its and family[0] != its[0]:
                    return f"family {family[0]} may not see family {its[0]}"
            return None
        may = self.layers[folder]["may"]
        if other in may or target in may:
            return None
        if file.endswith("_test.cpp") and other in closure(folder, self.layers):
            return None
        return f"{folder} may include {', '.join(may) or 'nothing of src/'}"

    def check_no_way_to_mlx(self, file: str) -> None:
        """Follows the headers of other folders: one of them may bring MLX in."""
        seen, pending = {file}, [[file]]
        while pending:
            way = pending.pop()
            for _, _, target in self.includes[way[-1]]:
                if target.startswith("mlx/") and len(way) > 1:
                    self.problems.append(f"src/{file}: reaches {target}: {' -> '.join(way[1:])}")
                    return
                if target in self.includes and target not in seen:
                    seen.add(target)
                    pending.append([*way, target])


def check(root: Path) -> list[str]:
    layers = tomllib.loads((root / "layers.toml").read_text())
    order = [name.strip() for name in layers.pop("order").split("<-")]
    return check_table(layers, order) or Checker(root, layers).check()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    problems = check(parser.parse_args().root)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} includes break layers.toml" if problems else "layers: all is well")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
