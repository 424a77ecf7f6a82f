"""Fixtures of the end-to-end tests: the built binary and the default model."""
import os
import subprocess

import pytest


@pytest.fixture(scope="session")
def binary():
    return os.environ["SLUICE_BIN"]


@pytest.fixture(scope="session")
def model():
    path = os.environ["SLUICE_DEFAULT_MODEL"]
    assert os.path.exists(path), f"{path} is missing: run `make setup`"
    return path


@pytest.fixture(scope="session")
def sluice(binary):
    """Runs the binary with arguments; returns the CompletedProcess (text)."""

    def run(*arguments, stdin="", env=None):
        return subprocess.run(
            [binary, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **(env or {})},
        )

    return run
