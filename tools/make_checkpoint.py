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
from mlx.utils import tree_flatten, tree_map_with_path
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


PLAIN_VARIANTS = {
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

# Qwen3.5's layout: every third layer is full attention here, so that 6 layers hold both kinds twice.
HYBRID = {
    "model_type": "qwen3_5",
    "tie_word_embeddings": True,
    "text_config": {
        "model_type": "qwen3_5_text",
        "hidden_size": 128,
        "intermediate_size": 192,
        "num_hidden_layers": 6,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "rms_norm_eps": 1e-6,
        "vocab_size": 300,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "full_attention_interval": 3,
        "linear_num_key_heads": 3,
        "linear_num_value_heads": 6,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 48,
        "linear_conv_kernel_dim": 4,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 100000.0,
            "partial_rotary_factor": 0.5,
            "mrope_section": [4, 2, 2],
            "mrope_interleaved": True,
        },
    },
}


def hybrid(dtype="float32", quantize=None, overrides=None, **text):
    tied = text.get("tie_word_embeddings", True)
    config = {**HYBRID, "tie_word_embeddings": tied}
    config["text_config"] = {**HYBRID["text_config"], **text}
    return {
        "config": config,
        "dtype": dtype,
        "quantize": quantize,
        "overrides": overrides or {},
    }


HYBRID_VARIANTS = {
    "qwen3_5-f32": hybrid(),
    "qwen3_5-bf16": hybrid("bfloat16", tie_word_embeddings=False),
    "qwen3_5-f16": hybrid("float16", linear_num_value_heads=3, linear_value_head_dim=32),
    "qwen3_5-bias": hybrid(attention_bias=True, linear_conv_kernel_dim=3),
    "qwen3_5-4bit": hybrid("bfloat16", quantize=(4, 32), linear_value_head_dim=64),
    "qwen3_5-mixed": hybrid(
        quantize=(4, 32),
        linear_value_head_dim=64,
        tie_word_embeddings=False,
        overrides={
            "language_model.lm_head": (6, 64),
            "language_model.model.layers.0.linear_attn.in_proj_a": (8, 64),
            "language_model.model.layers.1.linear_attn.in_proj_qkv": (5, 32),
            "language_model.model.layers.2.self_attn.q_proj": (3, 64),
            "language_model.model.layers.3.linear_attn.out_proj": (2, 64),
            "language_model.model.layers.4.linear_attn.in_proj_z": False,
        },
    ),
}
# The shape of Qwen3.5 0.8B: for speed and memory, not for tests.
BIG_VARIANTS = {
    "qwen3_5-0.8b-4bit": hybrid(
        "bfloat16",
        quantize=(4, 64),
        hidden_size=1024,
        intermediate_size=3584,
        num_hidden_layers=24,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=256,
        vocab_size=248320,
        max_position_embeddings=262144,
        full_attention_interval=4,
        linear_num_key_heads=16,
        linear_num_value_heads=16,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000000.0,
            "partial_rotary_factor": 0.25,
            "mrope_section": [11, 11, 10],
            "mrope_interleaved": True,
        },
    ),
}
VARIANTS = PLAIN_VARIANTS | HYBRID_VARIANTS | BIG_VARIANTS


def build(spec, seed):
    """The mlx-lm model with seeded random weights, and its config as written to disk."""
    config = {k: v for k, v in spec["config"].items() if v is not None}
    model_class, args_class = _get_classes(config)
    # from_dict may change the dictionaries it is given.
    model = model_class(args_class.from_dict(json.loads(json.dumps(config))))
    mx.random.seed(seed)
    dtype = getattr(mx, spec["dtype"])

    def randomize(path, x):
        if path.endswith("A_log"):  # as trained: decays from slow to fast; stays float32
            return mx.log(mx.random.uniform(0.05, 16, x.shape))
        if x.ndim == 1:
            return (1 + 0.1 * mx.random.normal(x.shape)).astype(dtype)
        if path.endswith("conv1d.weight"):
            return (mx.random.normal(x.shape) * 0.5).astype(dtype)
        return (mx.random.normal(x.shape) * (1.5 / x.shape[-1] ** 0.5)).astype(dtype)

    model.update(tree_map_with_path(randomize, model.parameters()))
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


def raw_spelling(weights):
    """A hybrid's weights as Hugging Face stores them, before mlx-lm's sanitize."""
    norms = ("layernorm.weight", "model.norm.weight", "q_norm.weight", "k_norm.weight")
    raw = []
    for key, x in weights:
        if key.endswith("conv1d.weight"):
            x = x.moveaxis(1, 2)
        if key.endswith(norms):
            x = (x.astype(mx.float32) - 1).astype(x.dtype)
        key = key.replace("language_model.model.", "model.language_model.")
        raw.append((key.replace("language_model.lm_head", "lm_head"), x))
    return raw


def write_tokenizer(out, vocab_size):
    """A byte-level BPE with no merges, a token for each byte and fillers: text in, some text out."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    letters = [chr(b) for b in printable] + [chr(0x100 + i) for i in range(len(others))]
    vocabulary = {token: i for i, token in enumerate(letters)}
    vocabulary |= {f"<filler {i}>": i for i in range(256, vocab_size)}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "decoder": {**byte_level, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    (out / "tokenizer.json").write_text(json.dumps(tokenizer))
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
    (out / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))


def write(name, out, seed=0, shards=1, raw=False):
    """Writes VARIANTS[name] to the folder out, split over `shards` files with an index.

    raw: a hybrid in Hugging Face's own spelling; nothing in it is quantized.
    """
    spec = VARIANTS[name]
    if raw:
        spec = {**spec, "quantize": None}
    model, config = build(spec, seed)
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    weights = sorted(tree_flatten(model.parameters()))
    if raw:
        weights = raw_spelling(weights)
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
    write_tokenizer(out, config.get("text_config", config)["vocab_size"])
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", choices=sorted(VARIANTS))
    parser.add_argument("out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", type=int, default=1)
    arguments = parser.parse_args()
    write(arguments.variant, arguments.out, arguments.seed, arguments.shards)
