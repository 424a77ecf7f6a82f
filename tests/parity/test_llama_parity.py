"""The plain transformer family on small random checkpoints against mlx-lm.

Reference mode must equal mlx-lm bit for bit (same MLX, same call shapes). Fast mode is judged
against the reference in float32.
"""

import pytest

from oracle import (
    assert_same_bits,
    check_own_kernels,
    mlx_lm_logits,
    random_prompt,
    sluice_logits,
    tool,
)

make_checkpoint = tool("make_checkpoint")


@pytest.mark.parametrize("name", sorted(make_checkpoint.PLAIN_VARIANTS))
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


@pytest.mark.parametrize("name", sorted(make_checkpoint.PLAIN_VARIANTS))
def test_own_kernels_are_near_the_float32_reference(name, tmp_path):
    folder = make_checkpoint.write(name, tmp_path / name, seed=4)
    check_own_kernels(folder, random_prompt(100, make_checkpoint.BASE["vocab_size"], seed=5), tmp_path)
