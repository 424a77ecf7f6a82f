"""`cmake --install` gives a tree that runs from any place and brings its licences."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BINARY_DIR = Path(os.environ["SLUICE_BINARY_DIR"])
SOURCE_DIR = Path(os.environ["SLUICE_SOURCE_DIR"])
# Nothing of the caller's environment may help to find a library.
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The installed tree, moved after the installation to a path with a space in it."""
    base = tmp_path_factory.mktemp("install")
    first = base / "first"
    subprocess.run(
        ["cmake", "--install", BINARY_DIR, "--prefix", first],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    moved = base / "moved there" / "sluice"
    moved.parent.mkdir()
    first.rename(moved)
    yield moved
    shutil.rmtree(base)


def test_runs_after_being_moved(tree):
    result = subprocess.run(
        [tree / "bin/sluice", "--version"], env=BARE, cwd="/", capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert re.match(r"sluice \d+\.\d+\.\d+ \(", result.stdout), result.stdout


def test_finds_its_libraries_in_the_tree_and_nothing_points_to_the_build(tree):
    answer = subprocess.run(
        ["ldd", tree / "bin/sluice"], env=BARE, capture_output=True, text=True, check=True
    ).stdout
    places = dict(re.findall(r"^\s*(lib\S+) => (.*) \(0x", answer, re.MULTILINE))
    ours = [name for name in places if re.match(r"lib(mlx|fmt|spdlog|blas|lapack|gfortran)\b", name)]
    assert "libmlx.so" in ours, answer
    for name in ours:
        assert Path(places[name]).resolve().is_relative_to(tree), f"{name} => {places[name]}"
    dynamic = subprocess.run(
        ["readelf", "-d", tree / "bin/sluice"], capture_output=True, text=True, check=True
    ).stdout
    assert str(SOURCE_DIR) not in dynamic and str(BINARY_DIR) not in dynamic


def test_brings_every_licence(tree):
    licenses = tree / "share/sluice/licenses"
    wanted = ["LICENSE", "NOTICE", "mlx/LICENSE", "mlx/sboms/auditwheel.cdx.json"]
    if (SOURCE_DIR / "bridge/Cargo.lock").exists():
        wanted.append("THIRD_PARTY_RUST.txt")
    for package in ("libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev", "libcli11-dev", "libboost-dev"):
        if Path(f"/usr/share/doc/{package}/copyright").exists():
            wanted.append(f"{package}.copyright")
    for name in wanted:
        assert (licenses / name).stat().st_size > 100, name
