"""Tiny seeded random checkpoints in the exact file layout of mlx-lm's conversions.

    python tools/make_checkpoint.py VARIANT OUT_DIR [--seed N]

Weights are random but scaled as in a trained net, so that logits are neither flat nor infinite.
The list of variants is VARIANTS below. Needs mlx and mlx-lm.
"""

import argparse
import json
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map
from mlx_lm.utils import _get_classes

BASE = {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "intermediate_size": 320,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": 300,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN_ROPE = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}


def variant(model_type, dtype="float32", quantize=None, overrides=None, **config):
    return {
        "config": {**BASE, "model_type": model_type, **config},
        "dtype": dtype,
        "quantize": quantize,  # (bits, group size)
        "overrides": overrides or {},  # module path -> (bits, group size) or False
    }


VARIANTS = {
    "llama-f32": variant("llama"),
    "llama-bf16": variant("llama", "bfloat16", tie_word_embeddings=False),
    "llama-f16": variant("llama", "float16"),
    "llama-bias": variant("llama", attention_bias=True, mlp_bias=True),
    "llama-traditional": variant("llama", rope_traditional=True),
    "llama-linear": variant("llama", rope_scaling={"rope_type": "linear", "factor": 4.0}),
    "llama-llama3": variant("llama", rope_scaling=LLAMA3_ROPE),
    "llama-yarn": variant("llama", rope_scaling=YARN_ROPE),
    "mistral-4bit": variant("mistral", quantize=(4, 64), tie_word_embeddings=False),
    "qwen2-8bit": variant("qwen2", quantize=(8, 32), num_attention_heads=4, head_dim=None),
    "qwen3-bf16-4bit": variant("qwen3", "bfloat16", quantize=(4, 32)),
    "qwen3-mixed": variant(
        "qwen3",
        quantize=(4, 32),
        overrides={
            "model.embed_tokens": (8, 64),
            "model.layers.0.mlp.down_proj": (6, 64),
            "model.layers.1.self_attn.v_proj": (5, 32),
            "model.layers.1.self_attn.q_proj": (2, 64),
            "model.layers.2.mlp.up_proj": (3, 128),
            "model.layers.2.self_attn.o_proj": False,
        },
    ),
}


def build(spec, seed):
    """The mlx-lm model with seeded random weights, and its config as written to disk."""
    config = {k: v for k, v in spec["config"].items() if v is not None}
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    mx.random.seed(seed)

    def randomize(x):
        if x.ndim == 1:
            return 1 + 0.1 * mx.random.normal(x.shape)
        return mx.random.normal(x.shape) * (1.5 / x.shape[-1] ** 0.5)

    dtype = getattr(mx, spec["dtype"])
    model.update(tree_map(lambda x: randomize(x).astype(dtype), model.parameters()))
    if spec["quantize"]:
        bits, group = spec["quantize"]
        config["quantization"] = {"group_size": group, "bits": bits}
        for path, override in spec["overrides"].items():
            config["quantization"][path] = override and {
                "bits": override[0],
                "group_size": override[1],
            }

        def predicate(path, module):
            if not hasattr(module, "to_quantized"):
                return False
            override = spec["overrides"].get(path)
            if override is None:
                return True
            return override and {"bits": override[0], "group_size": override[1]}

        nn.quantize(model, group_size=group, bits=bits, class_predicate=predicate)
    mx.eval(model.parameters())
    return model, config


def write(name, out, seed=0, shards=1):
    """Writes VARIANTS[name] to the folder out, split over `shards` files with an index."""
    model, config = build(VARIANTS[name], seed)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    weights = sorted(tree_flatten(model.parameters()))
    size = -(-len(weights) // shards)
    index = {}
    for i in range(shards):
        file = "model.safetensors" if shards == 1 else f"model-{i+1:05}-of-{shards:05}.safetensors"
        part = dict(weights[i * size : (i + 1) * size])
        mx.save_safetensors(str(out / file), part, metadata={"format": "mlx"})
        index.update({key: file for key in part})
    if shards > 1:
        total = sum(x.nbytes for _, x in weights)
        (out / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": total}, "weight_map": index})
        )
    (out / "config.json").write_text(json.dumps(config, indent=2))
    # A byte-level tokenizer with no merges: enough to be a complete folder.
    vocabulary = {chr(0x100 + i): i for i in range(config["vocab_size"])}
    (out / "tokenizer.json").write_text(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
            }
        )
    )
    (out / "tokenizer_config.json").write_text("{}")
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", choices=sorted(VARIANTS))
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.variant, arguments.out, arguments.seed, arguments.shards)
