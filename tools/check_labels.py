#!/usr/bin/env python3
"""Checks that every ctest test of a build folder has exactly one known label and a time limit.

  tools/check_labels.py BUILD_FOLDER LABEL...

Exit status 1 if one has not.
"""

from __future__ import annotations

import json
import subprocess
import sys


def check(tests: list[dict], labels: list[str]) -> list[str]:
    problems = []
    for test in tests:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        found = properties.get("LABELS", [])
        if len(found) != 1 or found[0] not in labels:
            problems.append(f"{test['name']}: labels {found}, not one of {labels}")
        if not properties.get("TIMEOUT"):
            problems.append(f"{test['name']}: no TIMEOUT")
    return problems


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__)
        return 2
    answer = subprocess.run(
        ["ctest", "--show-only=json-v1"], cwd=sys.argv[1], capture_output=True, text=True, check=True
    )
    tests = json.loads(answer.stdout)["tests"]
    problems = check(tests, sys.argv[2:])
    for problem in problems:
        print(problem)
    print(f"labels: {len(tests)} tests, {len(problems)} problems")
    return 1 if problems or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
