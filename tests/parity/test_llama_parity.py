"""The plain transformer family against mlx-lm, run live on the same machine.

Reference mode must equal mlx-lm bit for bit (same MLX, same call shapes, mx.compile off on both
sides). Fast mode is judged against the reference in float32.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

ROOT = Path(__file__).resolve().parents[2]
DUMP = Path(os.environ["SLUICE_BINARY_DIR"]) / "bin" / "logits_dump"


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_checkpoint = tool("make_checkpoint")


def test_compile_is_off():
    assert os.environ.get("MLX_DISABLE_COMPILE") == "1"


def sluice(model, prompt, steps, out, *flags):
    """Logits [steps + 1, V] of sluice, and its report."""
    command = [DUMP, "--model", model, "--prompt", ",".join(map(str, prompt))]
    command += ["--steps", steps, "--out", out, *flags]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    logits = np.fromfile(out, np.float32).reshape(steps + 1, report["vocab_size"])
    return logits, report


def oracle(folder, prompt, steps, chunk=2048, dtype=None):
    """Logits [steps + 1, V] of mlx-lm with generate_step's call shapes, greedy."""
    model, _ = load_model(Path(folder), lazy=False)
    if dtype is not None:
        model.set_dtype(dtype)
    cache = make_prompt_cache(model)
    ids = mx.array(prompt)[None]
    done = 0
    while done < len(prompt) - 1:
        count = min(chunk, len(prompt) - 1 - done)
        model(ids[:, done : done + count], cache=cache)
        mx.eval([c.state for c in cache])
        done += count
    token, rows = ids[:, -1:], []
    for _ in range(steps + 1):
        logits = model(token, cache=cache)[:, -1, :]
        rows.append(np.array(logits.astype(mx.float32))[0])
        token = mx.argmax(logits, axis=-1)[None]
    return np.stack(rows)


def random_prompt(length, vocab, seed=1):
    return np.random.default_rng(seed).integers(0, vocab, length).tolist()


def assert_same_bits(ours, theirs):
    same = ours.view(np.uint32) == theirs.view(np.uint32)
    assert same.all(), (
        f"{(~same).sum()} of {same.size} logits differ, first at {np.argwhere(~same)[0]}, "
        f"largest difference {np.abs(ours - theirs).max()}"
    )


def log_softmax(x):
    x = x.astype(np.float64)
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def kl_per_token(p_logits, q_logits):
    p, q = log_softmax(p_logits), log_softmax(q_logits)
    return (np.exp(p) * (p - q)).sum(-1)


@pytest.mark.parametrize("name", sorted(make_checkpoint.VARIANTS))
def test_reference_equals_mlx_lm(name, tmp_path):
    shards = 3 if name == "qwen3-mixed" else 1
    folder = make_checkpoint.write(name, tmp_path / name, seed=3, shards=shards)
    vocab = make_checkpoint.BASE["vocab_size"]
    for length, chunk in [(1, 2048), (2, 2048), (70, 2048), (150, 64)]:
        prompt = random_prompt(length, vocab, seed=length)
        ours, report = sluice(
            folder, prompt, 16, tmp_path / "out", "--kernels", "reference", "--chunk", chunk
        )
        assert report["linear_kernel_runs"] == 0
        assert_same_bits(ours, oracle(folder, prompt, 16, chunk))


@pytest.mark.parametrize("name", sorted(make_checkpoint.VARIANTS))
def test_own_kernels_are_near_the_float32_reference(name, tmp_path):
    folder = make_checkpoint.write(name, tmp_path / name, seed=4)
    prompt = random_prompt(100, make_checkpoint.BASE["vocab_size"], seed=5)
    reference, report = sluice(
        folder, prompt, 8, tmp_path / "a", "--kernels", "reference", "--dtype", "float32"
    )
    force = ",".join(map(str, report["greedy"]))
    fast, report = sluice(folder, prompt, 8, tmp_path / "b", "--kernels", "cpu", "--force", force)
    assert report["linear_kernel_runs"] > 0
    # float32 against float32, other orders of summation: some 1e-6 of the logits' size per layer.
    assert np.abs(fast - reference).max() < 2e-4 * np.abs(reference).max()
    assert kl_per_token(reference, fast).max() < 1e-6


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


def test_default_model_equals_mlx_lm(default_model, converted, tmp_path):
    prompt = random_prompt(64, 49152, seed=7)
    theirs = oracle(converted, prompt, 32)
    ours, _ = sluice(default_model, prompt, 32, tmp_path / "out", "--kernels", "reference")
    assert_same_bits(ours, theirs)


def test_default_model_fast_against_float32_reference(default_model, tmp_path):
    kls = []
    for seed in range(3):
        prompt = random_prompt(24, 49152, seed=seed)
        reference, report = sluice(
            default_model, prompt, 12, tmp_path / "a", "--kernels", "reference"
        )
        force = ",".join(map(str, report["greedy"]))
        fast, fast_report = sluice(
            default_model, prompt, 12, tmp_path / "b", "--kernels", "cpu", "--force", force
        )
        kls.append(kl_per_token(reference, fast))
        for step, (a, b) in enumerate(zip(report["greedy"], fast_report["greedy"])):
            # Equal, or a near tie.
            assert a == b or reference[step, a] - reference[step, b] < 1e-3
    mean = float(np.mean(kls))
    print(f"mean KL per token of fast against the float32 reference: {mean:.3g}")
    assert mean < 1e-6
