#!/usr/bin/env python3
"""Writes the licence texts of all crates that the Rust bridge links, for the installed tree.

The crates come from `cargo metadata` for the host target, without build and proc-macro dependencies
(nothing of those ends up in the archive). A crate whose package carries no licence file gets the
SPDX text of its `license` field's name; a crate without either is an error.
"""
import argparse
import json
import pathlib
import subprocess
import sys

LICENSE_NAMES = ("LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE", "COPYRIGHT")


def host_triple(rustc):
    for line in subprocess.check_output([rustc, "-vV"], text=True).splitlines():
        if line.startswith("host: "):
            return line.removeprefix("host: ")
    raise SystemExit("rustc -vV names no host")


def load_metadata(cargo, manifest):
    rustc = str(pathlib.Path(cargo).with_name("rustc"))
    command = [cargo, "metadata", "--format-version=1", "--locked", "--filter-platform",
               host_triple(rustc), "--manifest-path", manifest]
    return json.loads(subprocess.check_output(command, text=True))


def is_proc_macro(package):
    return any("proc-macro" in target["kind"] for target in package["targets"])


def linked_packages(metadata):
    """The packages that the root reaches through normal dependencies, root excluded."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    seen, todo = set(), [root]
    while todo:
        current = todo.pop()
        if current in seen or is_proc_macro(packages[current]):
            continue
        seen.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    seen.discard(root)
    return sorted((packages[i] for i in seen), key=lambda p: (p["name"], p["version"]))


def license_texts(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [path for path in sorted(folder.iterdir())
             if path.is_file() and path.name.upper().startswith(LICENSE_NAMES)]
    if package.get("license_file"):
        files.append(folder / package["license_file"])
    return [(path.name, path.read_text(encoding="utf-8", errors="replace"))
            for path in dict.fromkeys(files) if path.is_file()]


def describe(package):
    name = f"{package['name']} {package['version']}"
    spdx = package.get("license")
    texts = license_texts(package)
    if not spdx and not texts:
        raise SystemExit(f"{name} declares no licence and carries no licence file")
    authors = ", ".join(package.get("authors") or []) or "not named in the package"
    parts = [f"{name}\nlicence: {spdx or 'see below'}\nauthors: {authors}\n"
             f"source: {package.get('repository') or 'https://crates.io/crates/' + package['name']}"]
    if not texts:
        parts.append(f"The package carries no licence file; the text of {spdx} is at "
                     "https://spdx.org/licenses/.")
    for file, text in texts:
        parts.append(f"---- {file} ----\n{text.strip()}")
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cargo", default="cargo")
    parser.add_argument("--manifest", required=True, help="the crate's Cargo.toml")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    packages = linked_packages(load_metadata(arguments.cargo, arguments.manifest))
    if not packages:
        raise SystemExit("cargo metadata lists no crate")
    rule = "\n\n" + "=" * 100 + "\n\n"
    head = (f"sluice links these {len(packages)} Rust crates, each under its own licence. Where a "
            "crate offers a choice,\nsluice uses it under any of them.")
    text = rule.join([head] + [describe(package) for package in packages]) + "\n"
    pathlib.Path(arguments.output).write_text(text, encoding="utf-8")
    print(f"{len(packages)} crates")


if __name__ == "__main__":
    sys.exit(main())
