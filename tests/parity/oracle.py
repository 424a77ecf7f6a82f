"""What the parity tests share: sluice's logits, mlx-lm's logits, and how to compare them.

The oracle runs live on the same machine with mx.compile off, as the code under test does.
"""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

assert os.environ.get("MLX_DISABLE_COMPILE") == "1", "the bits depend on a g++ otherwise"

ROOT = Path(__file__).resolve().parents[2]
DUMP = Path(os.environ["SLUICE_BINARY_DIR"]) / "bin" / "logits_dump"


def tool(name):
    """The module tools/<name>.py."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sluice_logits(model, prompt, steps, out, *flags):
    """Logits [steps + 1, V] of sluice, and its report."""
    command = [DUMP, "--model", model, "--prompt", ",".join(map(str, prompt))]
    command += ["--steps", steps, "--out", out, *flags]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    logits = np.fromfile(out, np.float32).reshape(steps + 1, report["vocab_size"])
    return logits, report


def mlx_lm_logits(folder, prompt, steps, chunk=2048, dtype=None):
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


def check_own_kernels(folder, prompt, tmp_path, steps=8):
    """Own kernels against the reference in float32, over the reference's greedy text."""
    reference, report = sluice_logits(
        folder, prompt, steps, tmp_path / "a", "--kernels", "reference", "--dtype", "float32"
    )
    force = ",".join(map(str, report["greedy"]))
    fast, report = sluice_logits(
        folder, prompt, steps, tmp_path / "b", "--kernels", "cpu", "--force", force
    )
    assert report["linear_kernel_runs"] > 0
    # float32 against float32, other orders of summation: some 1e-6 of the logits' size per layer.
    assert np.abs(fast - reference).max() < 2e-4 * np.abs(reference).max()
    assert kl_per_token(reference, fast).max() < 1e-6
