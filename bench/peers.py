"""sluice beside llama.cpp on the same GGUF file in one run.

    python bench/peers.py [--model FILE] [--threads N] [--rounds N]

Builds llama-bench once, in .deps/peers, from the source that the set-up for tests fetched
(.deps/llama.cpp, out of the PyPI sdist of llama-cpp-python; `make setup`). Then it alternates the
two engines for some rounds, keeps each one's best, and prints one line for each piece of work:

    RATIO <model> <work> <ours tok/s> <peer tok/s> <ours / peer>

Run it on a quiet machine; the decode rate of two threads varies by a quarter otherwise.
"""

import argparse
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / ".deps" / "llama.cpp"
BUILD = ROOT / ".deps" / "peers" / "llama.cpp"
CMAKE_FLAGS = """-G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DGGML_OPENMP=ON
-DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_UI=OFF
-DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_COMMIT=x -DLLAMA_BUILD_NUMBER=0""".split()
WORK = [("prefill", 512), ("decode", 128)]


def llama_bench():
    """The path of llama-bench, built if it is not there."""
    binary = BUILD / "bin" / "llama-bench"
    if binary.exists():
        return binary
    if not SOURCE.exists():
        sys.exit(f"llama.cpp's source is not in {SOURCE}: run 'make setup'")
    print("building llama-bench (some minutes)", file=sys.stderr)
    subprocess.run(["cmake", "-S", SOURCE, "-B", BUILD, *CMAKE_FLAGS], check=True, stdout=2)
    subprocess.run(["ninja", "-C", BUILD, "llama-bench"], check=True, stdout=2)
    return binary


def run_peer(binary, model, threads, work, tokens):
    """Tokens per second of llama.cpp."""
    sizes = ["-p", tokens, "-n", 0] if work == "prefill" else ["-p", 0, "-n", tokens]
    command = [binary, "-m", model, "-t", threads, *sizes, "-r", 2, "-o", "jsonl"]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True)
    return max(max(json.loads(line)["samples_ts"]) for line in done.stdout.splitlines())


def run_ours(binary, model, threads, work, tokens):
    """Tokens per second of sluice."""
    command = [binary, "--model", model, "--threads", threads, f"--{work}", tokens, "--repeat", 2]
    done = subprocess.run([str(x) for x in command], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return float(rows[0]["tokens_per_second"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / ".deps" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    parser.add_argument("--model", type=Path, default=default)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ours", type=Path, default=ROOT / "build/release/bin/frontier_bench")
    parser.add_argument("--peer", type=Path, help="a llama-bench built elsewhere")
    arguments = parser.parse_args()
    peer = arguments.peer or llama_bench()
    best = {}
    for _ in range(arguments.rounds):
        for work, tokens in WORK:
            shared = (arguments.model, arguments.threads, work, tokens)
            ours, theirs = run_ours(arguments.ours, *shared), run_peer(peer, *shared)
            before = best.get((work, tokens), (0, 0))
            best[work, tokens] = (max(before[0], ours), max(before[1], theirs))
    for (work, tokens), (ours, theirs) in best.items():
        print(
            f"RATIO {arguments.model.name} {work}-{tokens} {ours:.1f} {theirs:.1f} "
            f"{ours / theirs:.2f}"
        )


if __name__ == "__main__":
    main()
