#!/usr/bin/env python3
"""Holds the loader's tokenizer.json of real GGUF vocabularies against golden ids.

llama.cpp's models/ folder has ggml-vocab-*.gguf with, beside them, .inp (texts) and .out (the ids
that Hugging Face's tokenizers gave for them, without special tokens). The vendored copy in the
sdist of the PyPI package llama-cpp-python has both.

    check_vocabularies.py gguf_tokenizer_dump folder
"""

import pathlib
import subprocess
import sys
import unicodedata

from tokenizers import Tokenizer

SEPARATOR = "\n__ggml_vocab_test__\n"
# Kinds that sluice refuses by name (WordPiece), so that a new refusal does not pass unseen.
REFUSED = {"bert-bge"}
# Their goldens were made without the NFC normalizer that transformers' tokenizer of the model has,
# so texts that NFC changes say nothing.
GOLDEN_WITHOUT_NFC = {"qwen35"}


def check(dump, vocabulary, skip_not_nfc):
    """Returns (texts, list of failures)."""
    # As bytes: universal newlines would turn "\r\n" into "\n".
    texts = vocabulary.with_name(vocabulary.name + ".inp").read_bytes().decode().split(SEPARATOR)
    if texts[-1] == "":
        texts.pop()
    golden = vocabulary.with_name(vocabulary.name + ".out").read_text().split("\n")[:-1]
    converted = subprocess.run([dump, vocabulary], capture_output=True, check=True)
    tokenizer = Tokenizer.from_str(converted.stdout.decode())
    failures = []
    for text, line in zip(texts, golden, strict=True):
        if skip_not_nfc and not unicodedata.is_normalized("NFC", text):
            continue
        expected = [int(i) for i in line.split()]
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        if ids != expected:
            failures.append(f"{text!r}: {ids}, golden {expected}")
    return len(texts), failures


def main():
    dump, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    vocabularies = sorted(f for f in folder.glob("ggml-vocab-*.gguf") if f.with_name(f.name + ".inp").exists())
    if not vocabularies:
        sys.exit(f"{folder}: no ggml-vocab-*.gguf with .inp and .out")
    bad = 0
    for vocabulary in vocabularies:
        name = vocabulary.stem.removeprefix("ggml-vocab-")
        if name in REFUSED:
            refused = subprocess.run([dump, vocabulary], capture_output=True)
            print(f"{name}: refused" if refused.returncode == 1 else f"{name}: NOT refused")
            bad += refused.returncode != 1
            continue
        count, failures = check(dump, vocabulary, name in GOLDEN_WITHOUT_NFC)
        print(f"{name}: {count - len(failures)} of {count} texts equal")
        for failure in failures:
            print("  " + failure)
        bad += bool(failures)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
