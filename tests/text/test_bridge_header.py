"""tools/check_bridge_header.py must fail when the header and the Rust sources drift apart."""

import pathlib
import shutil
import subprocess
import sys

import pytest

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]
CHECK = SOURCE_DIR / "tools" / "check_bridge_header.py"

DRIFTS = {
    "a parameter's type": ("sluice_tok_decode(const sluice_tok* tok, const uint32_t*",
                           "sluice_tok_decode(const sluice_tok* tok, const int32_t*"),
    "a missing parameter": ("sluice_stream_step(sluice_stream* stream, uint32_t id,",
                            "sluice_stream_step(sluice_stream* stream,"),
    "a result": ("size_t sluice_tok_vocab_size", "int32_t sluice_tok_vocab_size"),
    "constness": ("sluice_tok_encode(const sluice_tok*", "sluice_tok_encode(sluice_tok*"),
    "a function that Rust lacks": ("void sluice_ids_free(sluice_ids* buffer);",
                                   "void sluice_ids_free(sluice_ids* buffer);\n"
                                   "void sluice_new_thing(sluice_ids* buffer);"),
    "a function that C lacks": ("void sluice_ids_free(sluice_ids* buffer);", ""),
    "a field's order": ("  size_t len;\n  size_t cap;\n} sluice_ids;",
                        "  size_t cap;\n  size_t len;\n} sluice_ids;"),
    "a constant": ("#define SLUICE_PANIC 2", "#define SLUICE_PANIC 5"),
}


def check(folder):
    return subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)


def copy_of_bridge(tmp_path):
    for part in ("src", "include"):
        shutil.copytree(SOURCE_DIR / "bridge" / part, tmp_path / part)
    return tmp_path / "include" / "sluice_bridge.h"


def test_the_copy_passes(tmp_path):
    copy_of_bridge(tmp_path)
    found = check(tmp_path)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("what", DRIFTS)
def test_drift_is_found(tmp_path, what):
    header = copy_of_bridge(tmp_path)
    before, after = DRIFTS[what]
    text = header.read_text()
    assert text.count(before) == 1
    header.write_text(text.replace(before, after))
    found = check(tmp_path)
    assert found.returncode == 1, found.stdout
