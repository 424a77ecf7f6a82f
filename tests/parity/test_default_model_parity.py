"""The default model against mlx-lm on the same weights, and fast mode against the float32 reference."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from oracle import (
    ROOT,
    assert_same_bits,
    kl_per_token,
    mlx_lm_logits,
    random_prompt,
    sluice_logits,
)

VOCABULARY = 49152
PROMPTS = """What is the capital of France?
Once upon a time, in a small village by the sea,
def fibonacci(n):
The three laws of thermodynamics are
Dear Sir or Madam, I am writing to complain about
In 1969, the first human being set foot on
To make a good omelette, you need
The quick brown fox jumps over the lazy dog. The
SELECT name, COUNT(*) FROM orders GROUP BY
Water boils at 100 degrees
The main difference between a virus and a bacterium is
Q: What is 12 times 12? A:
My favourite season is autumn because
The mitochondrion is the
import numpy as np
She opened the letter and read:
Photosynthesis is the process by which
List three countries in South America:
The stock market fell today after
Kolik je hodin? To je""".splitlines()


@pytest.fixture(scope="session")
def default_model():
    path = os.environ.get("SLUICE_DEFAULT_MODEL", "")
    assert Path(path).is_file(), f"the default model is missing: SLUICE_DEFAULT_MODEL={path!r}"
    return path


@pytest.fixture(scope="session")
def converted(default_model, tmp_path_factory):
    """The default model as an MLX folder, by a converter that shares no code with the loader."""
    folder = tmp_path_factory.mktemp("converted") / "mlx"
    converter = ROOT / "tools" / "gguf_to_mlx.py"
    subprocess.run(
        [sys.executable, converter, default_model, folder, "--dtype", "float32"], check=True
    )
    return folder


@pytest.fixture(scope="session")
def tokenizer(default_model):
    dump = Path(os.environ["SLUICE_BINARY_DIR"]) / "bin" / "gguf_tokenizer_dump"
    done = subprocess.run([dump, default_model], capture_output=True, text=True, check=True)
    return Tokenizer.from_str(done.stdout)


def test_reference_equals_mlx_lm(default_model, converted, tmp_path):
    prompt = random_prompt(64, VOCABULARY, seed=7)
    theirs = mlx_lm_logits(converted, prompt, 32)
    ours, _ = sluice_logits(default_model, prompt, 32, tmp_path / "out", "--kernels", "reference")
    assert_same_bits(ours, theirs)


def test_fast_against_float32_reference(default_model, tokenizer, tmp_path):
    kls, equal = [], 0
    for text in PROMPTS:
        prompt = tokenizer.encode(text).ids
        reference, report = sluice_logits(
            default_model, prompt, 12, tmp_path / "a", "--kernels", "reference"
        )
        greedy = report["greedy"]
        force = ",".join(map(str, greedy))
        fast, fast_report = sluice_logits(
            default_model, prompt, 12, tmp_path / "b", "--kernels", "cpu", "--force", force
        )
        kls.append(kl_per_token(reference, fast).mean())
        equal += greedy == fast_report["greedy"]
        for step, (a, b) in enumerate(zip(greedy, fast_report["greedy"])):
            near_tie = reference[step, a] - reference[step, b] < 1e-3
            assert a == b or near_tie, f"{text!r}, step {step}: {b} instead of {a}"
    print(f"greedy text equal on {equal} of {len(PROMPTS)} prompts, mean KL {np.mean(kls):.2e}")
    assert np.mean(kls) < 1e-6
