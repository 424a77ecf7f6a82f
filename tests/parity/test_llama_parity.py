"""The plain transformer family on small random checkpoints against mlx-lm.

Reference mode must equal mlx-lm bit for bit (same MLX, same call shapes). Fast mode is judged
against the reference in float32.
"""

import numpy as np
import pytest

from oracle import (
    assert_same_bits,
    kl_per_token,
    mlx_lm_logits,
    random_prompt,
    sluice_logits,
    tool,
)

make_checkpoint = tool("make_checkpoint")


@pytest.mark.parametrize("name", sorted(make_checkpoint.VARIANTS))
def test_reference_equals_mlx_lm(name, tmp_path):
    shards = 3 if name == "qwen3-mixed" else 1
    folder = make_checkpoint.write(name, tmp_path / name, seed=3, shards=shards)
    vocab = make_checkpoint.BASE["vocab_size"]
    for length, chunk in [(1, 2048), (2, 2048), (70, 2048), (150, 64)]:
        prompt = random_prompt(length, vocab, seed=length)
        ours, report = sluice_logits(
            folder, prompt, 16, tmp_path / "out", "--kernels", "reference", "--chunk", chunk
        )
        assert report["linear_kernel_runs"] == 0
        assert_same_bits(ours, mlx_lm_logits(folder, prompt, 16, chunk))


@pytest.mark.parametrize("name", sorted(make_checkpoint.VARIANTS))
def test_own_kernels_are_near_the_float32_reference(name, tmp_path):
    folder = make_checkpoint.write(name, tmp_path / name, seed=4)
    prompt = random_prompt(100, make_checkpoint.BASE["vocab_size"], seed=5)
    reference, report = sluice_logits(
        folder, prompt, 8, tmp_path / "a", "--kernels", "reference", "--dtype", "float32"
    )
    force = ",".join(map(str, report["greedy"]))
    fast, report = sluice_logits(folder, prompt, 8, tmp_path / "b", "--kernels", "cpu", "--force", force)
    assert report["linear_kernel_runs"] > 0
    # float32 against float32, other orders of summation: some 1e-6 of the logits' size per layer.
    assert np.abs(fast - reference).max() < 2e-4 * np.abs(reference).max()
    assert kl_per_token(reference, fast).max() < 1e-6
