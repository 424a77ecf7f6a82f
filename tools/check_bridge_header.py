#!/usr/bin/env python3
"""Compares bridge/include/sluice_bridge.h with the extern "C" side of bridge/src/*.rs.

Functions (names, parameter names and types, results), #[repr(C)] structs (fields in order) and the
numeric constants must be the same on both sides. Usage: check_bridge_header.py [bridge folder]
"""
import pathlib
import re
import sys

SCALARS = {"u8": "uint8_t", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t",
           "u64": "uint64_t", "usize": "size_t", "bool": "bool"}


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def c_type_of_rust(rust):
    rust = rust.strip()
    for prefix, const in (("*mut ", ""), ("*const ", "const ")):
        if rust.startswith(prefix):
            return const + c_type_of_rust(rust.removeprefix(prefix)) + "*"
    if rust in SCALARS:
        return SCALARS[rust]
    if re.fullmatch(r"Sluice\w+", rust):
        return snake(rust)
    raise SystemExit(f"no C type is known for Rust's {rust!r}")


def split_parameters(text):
    return [" ".join(part.split()) for part in text.split(",") if part.strip()]


def rust_side(folder):
    functions, structs, constants = {}, {}, {}
    for path in sorted((folder / "src").glob("*.rs")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        exported = r'#\[no_mangle\]\s*pub unsafe extern "C" fn (\w+)\((.*?)\)\s*(?:->\s*([\w ]+?))?\s*\{'
        for name, parameters, result in re.findall(exported, text, re.S):
            converted = []
            for parameter in split_parameters(parameters):
                label, rust = parameter.split(":", 1)
                converted.append(f"{c_type_of_rust(rust)} {label.strip()}")
            functions[name] = (c_type_of_rust(result) if result else "void", converted)
        if len(re.findall(r"no_mangle", text)) != len(re.findall(exported, text, re.S)):
            raise SystemExit(f"{path}: a #[no_mangle] item is not understood")
        for name, body in re.findall(r"#\[repr\(C\)\][^{]*?pub struct (\w+) \{(.*?)\}", text, re.S):
            fields = []
            for field in split_parameters(body):
                label, rust = field.removeprefix("pub ").split(":", 1)
                fields.append(f"{c_type_of_rust(rust)} {label}")
            structs[snake(name)] = fields
        constant = r"pub const ((?:STATUS|ENCODE|DECODE|GRAMMAR|LINE|PROGRESS)_\w+): \w+ = (\d+);"
        for name, value in re.findall(constant, text):
            constants["SLUICE_" + name.removeprefix("STATUS_")] = value
    return functions, structs, constants


def normalized(parameter):
    """`const T *name` as `const T* name`."""
    label = re.search(r"(\w+)$", parameter).group(1)
    kind = parameter[: -len(label)].replace(" *", "*").strip()
    return f"{kind} {label}"


def c_side(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    functions = {}
    for result, name, parameters in re.findall(
            r"^(\w+) (sluice_\w+)\((.*?)\);", text, re.S | re.M):
        functions[name] = (result, [normalized(p) for p in split_parameters(parameters)])
    structs = {}
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.S):
        structs[name] = [normalized(" ".join(f.split())) for f in body.split(";") if f.strip()]
    constants = dict(re.findall(r"^#define (SLUICE_\w+) (\d+)", text, re.M))
    return functions, structs, constants


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "bridge")
    header = folder / "include" / "sluice_bridge.h"
    problems = []
    for what, rust, c in zip(("function", "struct", "constant"), rust_side(folder), c_side(header)):
        if not rust or not c:
            raise SystemExit(f"found no {what}s: the check itself is broken")
        for name in sorted(rust.keys() | c.keys()):
            # The one deliberate difference: text is `const char*` in C and bytes in Rust.
            same = repr(rust.get(name)) == repr(c.get(name)).replace("const char*", "const uint8_t*")
            if not same:
                problems.append(f"{what} {name}:\n  Rust {rust.get(name)}\n  C    {c.get(name)}")
    for problem in problems:
        print(problem)
    counts = [len(side) for side in c_side(header)]
    print(f"{header.name}: {counts[0]} functions, {counts[1]} structs, {counts[2]} constants, "
          f"{len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
