"""Each check of tools/ can fail: a small tree that breaks each rule, and one that breaks none."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name):
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layers, sizes, symbols, labels, setup = map(
    load, ("check_layers", "check_sizes", "check_symbols", "check_labels", "setup")
)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# ---- layers

TABLE = """
order = "base <- tensor <- kernels <- models"
[base]
may = []
mlx = "none"
[tensor]
may = ["base"]
mlx = "public"
[kernels]
may = ["tensor"]
mlx = "internals"
[models]
may = ["tensor", "kernels/context.h"]
mlx = "public"
families = true
[text]
may = ["base"]
mlx = "none"
external = ["sluice_bridge.h"]
[chat]
may = ["text", "tensor/plain.h"]
mlx = "none"
"""
GOOD_TREE = {
    "layers.toml": TABLE,
    "src/base/a.h": '#include <vector>\n#include "base/b.h"\n',
    "src/base/b.h": "",
    "src/tensor/mx.h": "#include <mlx/mlx.h>\n",
    "src/tensor/plain.h": "#include <string>\n",
    "src/kernels/context.h": '#include "tensor/mx.h"\n#include "mlx/backend/cpu/encoder.h"\n',
    "src/models/registry.cpp": '#include "models/llama/llama.h"\n',
    "src/models/llama/llama.h": '#include "kernels/context.h"\n',
    "src/models/llama/llama_test.cpp": '#include "base/a.h"\n',
    "src/text/t.h": "#include <sluice_bridge.h>\n",
    "src/chat/c.h": '#include "text/t.h"\n#include "tensor/plain.h"\n',
}


def test_layers_accepts_a_tree_that_keeps_the_rules(tmp_path):
    assert layers.check(write(tmp_path, GOOD_TREE)) == []


@pytest.mark.parametrize(
    "file, text, message",
    [
        ("src/base/bad.h", '#include "tensor/mx.h"', "base may include nothing of src/"),
        ("src/base/bad.cpp", "#include <mlx/array.h>", "base knows no MLX"),
        ("src/models/bad.cpp", '#include "mlx/primitives.h"', "internals of MLX"),
        ("src/models/bad.cpp", '#include "mlx/backend/cpu/encoder.h"', "internals of MLX"),
        ("src/tensor/bad.h", '#include "kernels/context.h"', "tensor may include base"),
        ("src/tensor/bad_test.cpp", '#include "kernels/context.h"', "tensor may include base"),
        ("src/models/gemma/bad.h", '#include "models/llama/llama.h"', "may not see family llama"),
        ("src/models/bad.h", '#include "../base/a.h"', "without ../"),
        ("src/models/bad.h", '#include "base/gone.h"', "no such file"),
        ("src/tensor/bad.h", "#include <sluice_bridge.h>", "for text only"),
        ("src/new/bad.h", "", "no entry [new]"),
        ("src/tensor/plain.h", '#include "tensor/mx.h"', "src/chat/c.h: reaches mlx/mlx.h"),
    ],
)
def test_layers_finds(tmp_path, file, text, message):
    problems = layers.check(write(tmp_path, GOOD_TREE | {file: text}))
    assert len(problems) == 1 and message in problems[0], problems


def test_layers_finds_a_cycle_and_a_wrong_order(tmp_path):
    write(tmp_path, GOOD_TREE | {"layers.toml": TABLE.replace("may = []", 'may = ["kernels"]')})
    problems = "\n".join(layers.check(tmp_path))
    assert "base reaches itself" in problems and "base reaches kernels above it" in problems


# ---- sizes


def test_sizes_fails_a_long_file_and_warns_of_a_middling_one(tmp_path):
    write(tmp_path, {"src/a.cpp": "\n" * 901, "src/b.cpp": "\n" * 900, "src/c.cpp": "\n" * 500})
    failures, warnings = sizes.check(tmp_path)
    assert len(failures) == 1 and failures[0].startswith("src/a.cpp: 901")
    assert len(warnings) == 1 and warnings[0].startswith("src/b.cpp: 900")


def test_sizes_measures_functions_and_parameters(tmp_path):
    body = "\n".join(["  if (x) { g('}', \"}\"); }  // }"] * 78)
    long_body = body + "\n  g();"
    seven = (
        "template <class T>\n"
        "int many(int a, std::map<int, int> b, int c, int d, int e, int f, T g) {\n}"
    )
    text = f"""namespace n {{
struct S {{
  void short_one() const {{
{body}
  }}
}};
void S::long_one(int a,
                 int b) {{
{long_body}
}}
{seven}
}}
"""
    failures, warnings = sizes.check(write(tmp_path, {"src/a.cpp": text}))
    assert failures == []
    assert len(warnings) == 2, warnings
    assert "S::long_one() has 81 lines" in warnings[0] and "many() has 7 parameters" in warnings[1]


# ---- format


def test_format_fails_for_a_file_that_would_change(tmp_path):
    style = (TOOLS.parent / ".clang-format").read_text()
    for text, status in (("int  main( ) {}\n", 1), ("int main() {}\n", 0)):
        write(tmp_path, {".clang-format": style, "src/a.cpp": text})
        command = [sys.executable, TOOLS / "check_format.py", "--root", tmp_path]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == status, result.stdout + result.stderr


# ---- symbols


@pytest.mark.parametrize(
    "source, symbol",
    [
        ('#include <cstdio>\nvoid f() { std::printf("x\\n"); }', "puts"),
        ('#include <cstdio>\nvoid f(int i) { std::printf("%d", i); }', "printf"),
        ("#include <cstdlib>\nvoid f() { std::abort(); }", "abort"),
        ("#include <cstdlib>\nvoid f() { exit(1); }", "exit"),
        ("#include <iostream>\nvoid f() { std::cout << 1; }", "_ZSt4cout"),
        ('#include <cstdio>\nvoid f(char* p) { std::snprintf(p, 2, "x"); }', None),
    ],
)
def test_symbols_finds_it_in_a_library_and_in_its_source(tmp_path, source, symbol):
    write(tmp_path, {"src/base/f.cpp": source + "\n"})
    made, library = tmp_path / "f.o", tmp_path / "libf.a"
    subprocess.run(["g++", "-O2", "-c", tmp_path / "src/base/f.cpp", "-o", made], check=True)
    subprocess.run(["ar", "rc", library, made], check=True)
    in_library = symbols.check_library(library)
    in_source = symbols.check_sources(tmp_path)
    if symbol is None:
        assert in_library == [] and in_source == []
    else:
        assert len(in_library) == 1 and f"libf.a(f.o): calls {symbol}:" in in_library[0]
        assert len(in_source) == 1 and in_source[0].startswith("src/base/f.cpp:2:")


def test_symbols_leaves_comments_strings_members_and_cli_alone(tmp_path):
    text = '// exit(1)\nconst char* s = "abort() std::cout"; /* printf( */ void g(X x) { x.exit(); }\n'
    call = "void f() { exit(1); }\n"
    allowed = {"src/cli/main.cpp": call, "src/base/test_model.h": call, "src/base/f_test.cpp": call}
    write(tmp_path, allowed | {"src/base/f.cpp": text, "src/base/f.h": "void abort();\n"})
    assert symbols.check_sources(tmp_path) == []


# ---- labels


def test_labels_wants_one_known_label_and_a_limit():
    def ctest(name, **properties):
        return {"name": name, "properties": [{"name": k, "value": v} for k, v in properties.items()]}

    tests = [
        ctest("good", LABELS=["unit"], TIMEOUT=1.0),
        ctest("two", LABELS=["unit", "soak"], TIMEOUT=1.0),
        ctest("unknown", LABELS=["slow"], TIMEOUT=1.0),
        ctest("none", TIMEOUT=1.0),
        ctest("endless", LABELS=["soak"]),
    ]
    problems = labels.check(tests, ["unit", "soak"])
    assert [problem.split(":")[0] for problem in problems] == ["two", "unknown", "none", "endless"]


# ---- set-up


def test_setup_reads_the_pins_that_cmake_reads():
    pins = setup.read_pins()
    assert pins["MLX_VERSION"].count(".") == 2
    for name in ("MLX_WHEEL_SHA256", "MODEL_WHEEL_SHA256", "MODEL_SHA256"):
        assert len(pins[name]) == 64
    requirements = (TOOLS.parent / "tests" / "requirements.txt").read_text()
    assert f"mlx[cpu]=={pins['MLX_VERSION']}\n" in requirements, "oracle and build differ in MLX"


def test_setup_names_a_missing_package():
    missing = setup.missing_packages(["dpkg", "no-such-package-anywhere"])
    assert missing == ["no-such-package-anywhere"]


def test_setup_refuses_an_old_rust_and_says_how_to_get_a_newer_one():
    with pytest.raises(setup.SetupError, match="Rust .* is too old: 999.0(.|\n)*rustup"):
        setup.check_rust("999.0")
    setup.check_rust("1.0")


def test_setup_replaces_a_link_without_following_it(tmp_path):
    write(tmp_path, {"theirs/file": "kept", "new/file": "new"})
    (tmp_path / "place").symlink_to(tmp_path / "theirs")
    setup.replace_tree(tmp_path / "new", tmp_path / "place")
    assert (tmp_path / "place" / "file").read_text() == "new"
    assert (tmp_path / "theirs" / "file").read_text() == "kept"


# ---- Makefile


@pytest.mark.parametrize("text", ["-5 $5 $(shell echo no) `id` \"q\" 'q' $HOME #x \\", "two\nlines"])
@pytest.mark.parametrize("where", ["argument", "environment"])
def test_makefile_hands_the_prompt_over_as_it_is(tmp_path, text, where):
    makefile = write(tmp_path, {"t.mk": "include Makefile\nshow:\n\t@printf '<%s>' \"$$PROMPT\"\n"})
    command = ["make", "-s", "-f", makefile / "t.mk", "show"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    if where == "argument":
        command.append(f"PROMPT={text}")
    else:
        environment["PROMPT"] = text
    result = subprocess.run(
        command, cwd=TOOLS.parent, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == f"<{text}>"
