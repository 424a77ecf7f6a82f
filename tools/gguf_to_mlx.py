#!/usr/bin/env python3
"""Converts a GGUF model to an MLX folder that mlx_lm can load: config.json and model.safetensors.

The oracle of the parity tests: it reads the file with the `gguf` package and shares no code with
src/loader, so that the two can be held against each other. Block-quantized matrices keep their
values: Q4_0 and Q4_1 become affine 4 bit, Q8_0 affine 8 bit, all in groups of 32. No tokenizer
files are written.

    tools/gguf_to_mlx.py model.gguf folder [--dtype float16|float32]
"""

import argparse
import json
import pathlib
import re
import sys

import gguf
import mlx.core as mx
import numpy as np

FAMILIES = {"llama": True, "qwen2": False, "qwen3": False}  # name -> are q and k rows interleaved
GROUP = 32
BLOCK_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OTHER_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}


def module_path(stem):
    """GGUF's tensor name without its suffix -> Hugging Face's module path."""
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)", stem)
    if match and match[2] in BLOCK_PARTS:
        return f"model.layers.{match[1]}.{BLOCK_PARTS[match[2]]}"
    if stem in OTHER_NAMES:
        return OTHER_NAMES[stem]
    sys.exit(f"tensor {stem}: no such part in this family")


def affine(tensor):
    """Blocks of a quantized GGUF tensor -> (codes [N, K], scales, biases [N, K / 32], bits)."""
    kind = tensor.tensor_type.name
    rows = int(tensor.shape[1])
    blocks = np.ascontiguousarray(tensor.data).reshape(rows, -1, {"Q4_0": 18, "Q4_1": 20, "Q8_0": 34}[kind])
    d = blocks[..., 0:2].copy().view(np.float16)[..., 0].astype(np.float32)
    if kind == "Q8_0":
        codes = (blocks[..., 2:].view(np.int8).astype(np.int16) + 128).astype(np.uint32)
        return codes.reshape(rows, -1), d, -128 * d, 8
    nibbles = blocks[..., 2:] if kind == "Q4_0" else blocks[..., 4:]
    codes = np.concatenate([nibbles & 15, nibbles >> 4], axis=-1).astype(np.uint32)
    if kind == "Q4_0":
        bias = -8 * d
    else:
        bias = blocks[..., 2:4].copy().view(np.float16)[..., 0].astype(np.float32)
    return codes.reshape(rows, -1), d, bias, 4


def pack(codes, bits):
    """Codes along K into uint32 words, lowest bits first."""
    per_word = 32 // bits
    words = codes.reshape(codes.shape[0], -1, per_word)
    shifts = np.arange(per_word, dtype=np.uint32) * np.uint32(bits)
    return np.bitwise_or.reduce(words << shifts, axis=-1)


def half_split(array, head_dim):
    """Undoes llama.cpp's row order: neighbouring rows of a head go back to its two halves."""
    heads = array.reshape(-1, head_dim // 2, 2, *array.shape[1:])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(array.shape)


def dense(tensor):
    kind = tensor.tensor_type.name
    shape = [int(n) for n in reversed(tensor.shape)]
    if kind == "BF16":
        bits = np.ascontiguousarray(tensor.data).view(np.uint16).reshape(shape)
        return (bits.astype(np.uint32) << 16).view(np.float32), mx.bfloat16
    dtypes = {"F32": mx.float32, "F16": mx.float16}
    if kind not in dtypes:
        sys.exit(f"tensor {tensor.name} has type {kind}; this tool reads F32, F16, BF16, Q4_0, Q4_1, Q8_0")
    return np.asarray(tensor.data).reshape(shape), dtypes[kind]


def read_config(reader, arch, names):
    def get(key, default=None):
        field = reader.get_field(f"{arch}.{key}")
        return default if field is None else field.contents()

    heads = get("attention.head_count")
    embedding = next(t for t in reader.tensors if t.name == "token_embd.weight")
    config = {
        "model_type": arch,
        "hidden_size": get("embedding_length"),
        "num_hidden_layers": get("block_count"),
        "intermediate_size": get("feed_forward_length"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": get("attention.key_length", get("embedding_length") // heads),
        # The float32 of the file by its shortest decimal: 1e-05, not 9.999999747378752e-06.
        "rms_norm_eps": float(str(np.float32(get("attention.layer_norm_rms_epsilon")))),
        "rope_theta": float(str(np.float32(get("rope.freq_base", 10000.0)))),
        "max_position_embeddings": get("context_length"),
        "vocab_size": int(embedding.shape[1]),
        "tie_word_embeddings": "output.weight" not in names,
        "attention_bias": "blk.0.attn_q.bias" in names,
    }
    kind = get("rope.scaling.type", "none")
    if kind != "none" or "rope_freqs.weight" in names:
        sys.exit(f"rope scaling ({kind}) is beyond this tool")
    return config


def convert(source, folder, dtype):
    reader = gguf.GGUFReader(source)
    arch = reader.get_field("general.architecture").contents()
    if arch not in FAMILIES:
        sys.exit(f"{source}: architecture {arch}; this tool reads {', '.join(FAMILIES)}")
    config = read_config(reader, arch, {t.name for t in reader.tensors})
    weights, formats = {}, {}
    for tensor in reader.tensors:
        stem, suffix = tensor.name.rsplit(".", 1)
        path = module_path(stem)
        split = FAMILIES[arch] and stem.endswith((".attn_q", ".attn_k"))
        fix = (lambda a: half_split(a, config["head_dim"])) if split else (lambda a: a)
        if tensor.tensor_type.name in ("Q4_0", "Q4_1", "Q8_0"):
            codes, scales, biases, bits = affine(tensor)
            weights[f"{path}.weight"] = mx.array(fix(pack(codes, bits)))
            weights[f"{path}.scales"] = mx.array(fix(scales)).astype(dtype)
            weights[f"{path}.biases"] = mx.array(fix(biases)).astype(dtype)
            formats[path] = bits
        else:
            values, kind = dense(tensor)
            weights[f"{path}.{suffix}"] = mx.array(fix(values)).astype(kind)
    if formats:
        bits = list(formats.values())
        default = max(set(bits), key=bits.count)
        config["quantization"] = {"group_size": GROUP, "bits": default, "mode": "affine"}
        for path, own in formats.items():
            if own != default:
                config["quantization"][path] = {"group_size": GROUP, "bits": own, "mode": "affine"}
    folder.mkdir(parents=True, exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gguf", type=pathlib.Path, help="the GGUF file")
    parser.add_argument("folder", type=pathlib.Path, help="the MLX folder to write")
    parser.add_argument(
        "--dtype",
        choices=("float16", "float32"),
        default="float16",
        help="of scales and biases; it makes mlx_lm's activation dtype (default: float16)",
    )
    args = parser.parse_args()
    convert(args.gguf, args.folder, getattr(mx, args.dtype))


if __name__ == "__main__":
    main()
