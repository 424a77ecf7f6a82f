"""The Gated-DeltaNet hybrids against mlx-lm: small random checkpoints and the demo model."""

import mlx.core as mx
import numpy as np
import pytest
from tokenizers import Tokenizer

from oracle import (
    ROOT,
    assert_same_bits,
    check_own_kernels,
    mlx_lm_logits,
    random_prompt,
    sluice_logits,
    tool,
)

make_checkpoint = tool("make_checkpoint")
VOCAB = make_checkpoint.HYBRID["text_config"]["vocab_size"]
DEMO = ROOT / "models" / "sluice-demo-66m"
PROMPTS = """What is the capital of France?
Repeat after me: seven green bottles
Count from 3 to 9.
Once upon a time, in a small village by the sea,
def fibonacci(n):
The three laws of thermodynamics are
Extract the name as JSON: "My name is Ada and I am 36."
The quick brown fox jumps over the lazy dog. The
SELECT name, COUNT(*) FROM orders GROUP BY
Water boils at 100 degrees
Q: What is 12 times 12? A:
My favourite season is autumn because
Key: apple=4, pear=7, plum=9. What is the value of pear?
import numpy as np
She opened the letter and read:
List three countries in South America:
Photosynthesis is the process by which
Dear Sir or Madam, I am writing to complain about
In 1969, the first human being set foot on
Kolik je hodin? To je""".splitlines()


@pytest.mark.parametrize("name", sorted(make_checkpoint.HYBRID_VARIANTS))
def test_reference_equals_mlx_lm(name, tmp_path):
    shards = 3 if name == "qwen3_5-mixed" else 1
    folder = make_checkpoint.write(name, tmp_path / name, seed=3, shards=shards)
    for length, chunk, steps in [(1, 2048, 8), (2, 2048, 8), (70, 2048, 16), (150, 64, 64)]:
        prompt = random_prompt(length, VOCAB, seed=length)
        ours, report = sluice_logits(
            folder, prompt, steps, tmp_path / "out", "--kernels", "reference", "--chunk", chunk
        )
        assert report["linear_kernel_runs"] == 0
        assert_same_bits(ours, mlx_lm_logits(folder, prompt, steps, chunk))


@pytest.mark.parametrize("name", sorted(make_checkpoint.HYBRID_VARIANTS))
def test_own_kernels_are_near_the_float32_reference(name, tmp_path):
    folder = make_checkpoint.write(name, tmp_path / name, seed=4)
    check_own_kernels(folder, random_prompt(100, VOCAB, seed=5), tmp_path)


@pytest.mark.parametrize("name", ["qwen3_5-f32", "qwen3_5-bias"])
def test_the_raw_spelling_is_the_same_model(name, tmp_path):
    """Hugging Face's own layout: other names, convolutions [C, 1, K], norms without their 1."""
    folder = make_checkpoint.write(name, tmp_path / "converted", seed=6)
    raw = make_checkpoint.write(name, tmp_path / "raw", seed=6, raw=True)
    prompt = random_prompt(40, VOCAB, seed=6)
    flags = ["--kernels", "reference", "--dtype", "float32"]
    ours, _ = sluice_logits(folder, prompt, 8, tmp_path / "a", *flags)
    again, _ = sluice_logits(raw, prompt, 8, tmp_path / "b", *flags)
    # (w - 1) + 1 rounds.
    assert np.abs(ours - again).max() < 1e-4 * np.abs(ours).max()
    assert_same_bits(
        sluice_logits(raw, prompt, 8, tmp_path / "c", "--kernels", "reference")[0],
        mlx_lm_logits(raw, prompt, 8),
    )


@pytest.fixture(scope="module")
def demo_tokenizer():
    return Tokenizer.from_file(str(DEMO / "tokenizer.json"))


def test_demo_model_equals_mlx_lm_in_float32(demo_tokenizer, tmp_path):
    text = PROMPTS * 4
    for i, prompt in enumerate(PROMPTS):
        # 64 tokens: the prompt itself and what follows it in the list.
        ids = demo_tokenizer.encode(" ".join([prompt, *text[i + 1 : i + 12]])).ids[:64]
        assert len(ids) == 64
        steps = 16 if i < 2 else 1
        ours, _ = sluice_logits(
            DEMO, ids, steps, tmp_path / "out", "--kernels", "reference", "--dtype", "float32"
        )
        assert_same_bits(ours, mlx_lm_logits(DEMO, ids, steps, dtype=mx.float32))


def test_demo_model_own_kernels(demo_tokenizer, tmp_path):
    for prompt in PROMPTS[:6]:
        check_own_kernels(DEMO, demo_tokenizer.encode(prompt).ids, tmp_path)
