"""bin/text_probe as a Python object, and where the tests' files are."""

import json
import os
import pathlib
import subprocess

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[2]
BINARY_DIR = pathlib.Path(os.environ["SLUICE_BINARY_DIR"])
LLAMA_CPP = pathlib.Path(os.environ.get("SLUICE_LLAMA_CPP", SOURCE_DIR / ".deps" / "llama.cpp"))


def llama_cpp_file(name):
    path = LLAMA_CPP / "models" / name
    assert path.is_file(), f"{path} is missing: run 'make setup'"
    return path


class ProbeError(Exception):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


class Probe:
    def __init__(self):
        program = BINARY_DIR / "bin" / "text_probe"
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, op, **fields):
        # ASCII escapes: no line separator of the texts may end the line.
        self.process.stdin.write(json.dumps({"op": op, **fields}).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the probe ended at {op}"
        answer = json.loads(line)
        if "error" in answer:
            raise ProbeError(answer["error"], answer["code"])
        return answer

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=10) == 0
