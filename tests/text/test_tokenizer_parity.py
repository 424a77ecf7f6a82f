"""src/text's tokenizer against Hugging Face's `tokenizers` in Python, on real vocabularies."""

import os
import random
import subprocess

import pytest
from corpus import corpus
from probe import BINARY_DIR, Probe, ProbeError, llama_cpp_file
from tokenizers import Tokenizer

VOCABULARIES = ["gpt-2", "llama-bpe", "qwen35", "gemma-4", "llama-spm", "starcoder", "default-model"]
# Decoders with <0xXX> tokens: HF replaces a whole run of them if any part of it is broken, which no
# stream can do; see DecoderPlan in bridge/src.
BYTE_FALLBACK = {"gemma-4", "llama-spm"}
LINES = corpus()


def tokenizer_json(name, folder):
    if name == "default-model":
        path = os.environ["SLUICE_DEFAULT_MODEL"]
    else:
        path = llama_cpp_file(f"ggml-vocab-{name}.gguf")
    dump = subprocess.run([BINARY_DIR / "bin" / "gguf_tokenizer_dump", path], capture_output=True)
    assert dump.returncode == 0, dump.stderr.decode()
    file = folder / f"{name}.json"
    file.write_bytes(dump.stdout)
    return file


@pytest.fixture(scope="module", params=VOCABULARIES)
def pair(request, tmp_path_factory):
    """(name, probe with the vocabulary loaded, HF tokenizer of the same file)"""
    file = tokenizer_json(request.param, tmp_path_factory.mktemp("vocabulary"))
    probe = Probe()
    probe.ask("load", path=str(file))
    oracle = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    yield request.param, probe, oracle
    probe.close()


def test_the_corpus_is_large_and_varied():
    assert len(LINES) == 2000
    assert len(set(LINES)) > 1800


@pytest.mark.parametrize("add_special", [False, True])
def test_ids_are_equal(pair, add_special):
    _, probe, oracle = pair
    for line in LINES:
        ids = probe.ask("encode", text=line, add_special=add_special)["ids"]
        assert ids == oracle.encode(line, add_special_tokens=add_special).ids, repr(line)


def test_ids_of_the_joined_corpus_are_equal(pair):
    _, probe, oracle = pair
    text = "\n".join(LINES)
    assert probe.ask("encode", text=text, add_special=False)["ids"] == oracle.encode(
        text, add_special_tokens=False).ids


def test_special_tokens_in_a_text_are_read_or_left_as_asked(pair):
    _, probe, oracle = pair
    special = [t.content for t in oracle.get_added_tokens_decoder().values() if t.special][:20]
    assert special, "the vocabulary has no special token"
    for token in special:
        text = f"before {token} after{token}"
        assert probe.ask("encode", text=text, add_special=False)["ids"] == oracle.encode(
            text, add_special_tokens=False).ids
        oracle.encode_special_tokens = True
        try:
            expected = oracle.encode(text, add_special_tokens=False).ids
        finally:
            oracle.encode_special_tokens = False
        plain = probe.ask("encode", text=text, add_special=False, parse_special=False)["ids"]
        assert plain == expected, repr(text)


@pytest.mark.parametrize("skip_special", [False, True])
def test_texts_are_equal_and_streams_join_to_them(pair, skip_special):
    _, probe, oracle = pair
    for line in LINES[:400]:
        ids = oracle.encode(line, add_special_tokens=True).ids
        expected = oracle.decode(ids, skip_special_tokens=skip_special)
        assert probe.ask("decode", ids=ids, skip_special=skip_special)["text"] == expected
        pieces = probe.ask("stream", ids=ids, skip_special=skip_special)["pieces"]
        assert "".join(pieces) == expected, repr(line)


def test_random_ids_stream_to_what_they_decode_to(pair):
    name, probe, oracle = pair
    rng = random.Random(7)
    size = oracle.get_vocab_size()
    for _ in range(200):
        ids = [rng.randrange(size + 3) for _ in range(rng.randint(1, 40))]
        text = probe.ask("decode", ids=ids, skip_special=True)["text"]
        pieces = probe.ask("stream", ids=ids, skip_special=True)["pieces"]
        assert "".join(pieces) == text
        if name not in BYTE_FALLBACK:
            assert text == oracle.decode(ids, skip_special_tokens=True)


def test_a_stream_behind_a_prompt_continues_its_text(pair):
    _, probe, oracle = pair
    for line in LINES[:200]:
        ids = oracle.encode("Say: " + line, add_special_tokens=False).ids
        for cut in {1, len(ids) // 2, len(ids) - 1} - {0}:
            # A cut inside of a character has no text of its own to compare with.
            before = probe.ask("decode", ids=ids[:cut], skip_special=True)["text"]
            if before.endswith("\ufffd"):
                continue
            pieces = probe.ask("stream", ids=ids[cut:], prompt=ids[:cut], skip_special=True)["pieces"]
            whole = probe.ask("decode", ids=ids, skip_special=True)["text"]
            assert before + "".join(pieces) == whole, (line, cut)


def test_token_bytes_spell_the_encoded_text(pair):
    _, probe, oracle = pair
    for line in LINES[:300]:
        ids = oracle.encode(line, add_special_tokens=False).ids
        hexes = probe.ask("bytes", ids=ids)["hex"]
        spelled = bytes.fromhex("".join(hexes)).decode(errors="replace")
        text = oracle.decode(ids, skip_special_tokens=False)
        # SentencePiece's decoder drops the space that its normalizer put in front.
        assert spelled in (text, " " + text), repr(line)


def test_inputs_that_would_split_wrongly_are_refused(pair):
    _, probe, _ = pair
    with pytest.raises(ProbeError, match="white-space characters in a row") as caught:
        probe.ask("encode", text="a" + " " * 600_000 + "b", add_special=False)
    assert caught.value.code == "invalid_argument"
