"""sluice serve on the default model: real clients, wrong requests, rows that come free, signals."""
from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
import time
from urllib.parse import urlsplit

import openai
import pytest

PATIENCE = 60  # seconds
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]
ENDLESS = {"temperature": 0, "extra_body": {"ignore_eos": True}}


class Server:
    """A running `sluice serve`; a context manager that ends it by SIGTERM and checks how it ends."""

    def __init__(self, binary: str, model: str, *flags: str):
        self.process = subprocess.Popen(
            [binary, "serve", "--model", model, "--port", "0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), self.process.stderr.read()
        self.address = urlsplit(line.split()[-1])
        self.log: list[str] = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()
        self.client = openai.OpenAI(
            base_url=f"{self.address.geturl()}/v1", api_key="none", max_retries=0, timeout=PATIENCE
        )

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str):
        connection = http.client.HTTPConnection(self.address.netloc, timeout=PATIENCE)
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    def post(self, body, path: str = "/v1/chat/completions"):
        """Status and error object of a request that must be refused."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        status, answer = self.request("POST", path, raw)
        return status, answer["error"]

    def wait_for(self, **expected: int) -> bool:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            health = self.request("GET", "/health")[1]
            if all(health[key] == value for key, value in expected.items()):
                return True
            time.sleep(0.01)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(timeout=PATIENCE) == 0
        self.reader.join(timeout=PATIENCE)


@pytest.fixture(scope="module")
def server(binary, model):
    flags = ["--model-id", "smol", "--max-rows", "2", "--queue-limit", "1"]
    with Server(binary, model, *flags) as running:
        yield running


@pytest.fixture
def client(server):
    return server.client


def ask(client, **settings):
    settings = {"model": "smol", "messages": QUESTION, "temperature": 0, **settings}
    return client.chat.completions.create(**settings)


def test_lists_its_model(client, server, model):
    assert [entry.id for entry in client.models.list()] == ["smol"]
    status, health = server.request("GET", "/health")
    assert status == 200 and health["status"] == "ok" and health["queue_limit"] == 1


def test_the_default_model_names_paris(client):
    answer = ask(client, max_tokens=40)
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens > 10


def test_a_stream_equals_the_whole(client):
    messages = [{"role": "user", "content": "Write two sentences about the sea."}]
    whole = ask(client, messages=messages, max_tokens=48)
    chunks = list(
        ask(
            client,
            messages=messages,
            max_tokens=48,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content != ""
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason


def test_a_seeded_answer_is_the_same_alone_and_beside_another(client, server):
    settings = {"temperature": 1, "seed": 7, "max_tokens": 24, "extra_body": {"ignore_eos": True}}
    alone = ask(client, **settings).choices[0].message.content
    neighbour = client.completions.create(
        model="smol", prompt="Once upon a time", max_tokens=4000, stream=True, **ENDLESS
    )
    next(iter(neighbour))
    assert server.wait_for(running=1)
    assert ask(client, **settings).choices[0].message.content == alone
    neighbour.close()
    assert server.wait_for(running=0)
    assert ask(client, **{**settings, "seed": 8}).choices[0].message.content != alone


def test_logprobs_spell_the_answer(client):
    answer = ask(client, max_tokens=12, logprobs=True, top_logprobs=2)
    tokens = answer.choices[0].logprobs.content
    assert b"".join(bytes(t.bytes) for t in tokens).decode() == answer.choices[0].message.content
    for token in tokens:
        assert token.logprob <= 0 and len(token.top_logprobs) == 2
        assert token.top_logprobs[0].token == token.token  # greedy: the likeliest one


def test_completions_continue_a_text(client, sluice, model):
    answer = client.completions.create(
        model="smol", prompt="The sky is", max_tokens=8, temperature=0
    )
    done = sluice("run", "-m", model, "-p", "The sky is", "-n", 8, "--temp", 0, "--json")
    assert answer.choices[0].text == json.loads(done.stdout)["text"]


def test_a_cancelled_stream_frees_its_row(client, server):
    stream = client.completions.create(
        model="smol", prompt="Once upon a time", max_tokens=4000, stream=True, **ENDLESS
    )
    next(iter(stream))
    assert server.request("GET", "/health")[1]["running"] == 1
    stream.close()
    assert server.wait_for(running=0)


def test_a_full_queue_is_said_and_passes(client, server):
    def start():
        stream = client.completions.create(
            model="smol", prompt="Once upon a time", max_tokens=4000, stream=True, **ENDLESS
        )
        next(iter(stream))
        return stream

    running = [start(), start()]
    waiting = threading.Thread(target=lambda: ask(client, max_tokens=1))
    waiting.start()
    assert server.wait_for(running=2, queued=1)
    status, error = server.post({"model": "smol", "messages": QUESTION})
    assert status == 503 and error["code"] == "queue_full"
    assert "1 requests are waiting and 1 may" in error["message"]
    for stream in running:
        stream.close()
    waiting.join(timeout=PATIENCE)
    assert not waiting.is_alive()
    assert server.wait_for(running=0, queued=0)


def test_wrong_requests_say_what_and_where(server):
    def refused(expected: int, code: str, body, param: str | None = None, text: str = ""):
        status, error = server.post(body)
        assert (status, error["code"], error["param"]) == (expected, code, param), error
        assert text in error["message"], error

    good = {"model": "smol", "messages": QUESTION}
    refused(400, "invalid_json", b'{"model": "smol", ', text="byte")
    refused(400, "invalid_json", b'{"model": "\xff"}', text="byte")
    refused(400, "invalid_value", {**good, "messages": "hello"}, "messages")
    refused(400, "invalid_value", {**good, "temperature": "hot"}, "temperature", "string")
    bad_part = [{"role": "user", "content": [{"type": "text", "text": 5}]}]
    refused(400, "invalid_value", {**good, "messages": bad_part}, "messages[0].content[0].text")
    refused(400, "invalid_value", {**good, "max_tokens": -1}, "max_tokens", "-1")
    refused(404, "model_not_found", {**good, "model": "gpt-5"}, "model", "smol")
    refused(413, "body_too_large", b" " * 10_000_000)
    long = [{"role": "user", "content": "word " * 9000}]
    refused(400, "context_length_exceeded", {**good, "messages": long}, "messages", "8192")
    refused(400, "invalid_value", {**good, "logit_bias": {"a": 1}}, "logit_bias")
    # And nothing of this is left behind.
    assert server.wait_for(running=0, queued=0)


def test_one_log_line_for_each_request(client, server):
    ask(client, max_tokens=2, extra_headers={"x-request-id": "trace-9"})
    end = time.monotonic() + PATIENCE
    lines: list[str] = []
    while not lines and time.monotonic() < end:
        lines = [line for line in server.log if "id=trace-9" in line]
        time.sleep(0.01)
    assert len(lines) == 1
    for part in ("route=/v1/chat/completions", "status=200", "completion_tokens=2"):
        assert part in lines[0]


def test_a_signal_lets_answers_end(binary, model):
    with Server(binary, model) as server:
        stream = server.client.completions.create(
            model="", prompt="Once upon a time", max_tokens=40, stream=True, **ENDLESS
        )
        chunks = [next(stream)]
        server.process.send_signal(signal.SIGTERM)
        chunks += list(stream)
        assert chunks[-1].choices[0].finish_reason == "length"
    assert any("stopping" in line for line in server.log)


def test_a_second_signal_ends_answers(binary, model):
    with Server(binary, model) as server:
        stream = server.client.completions.create(
            model="", prompt="Once upon a time", max_tokens=8000, stream=True, **ENDLESS
        )
        next(stream)
        server.process.send_signal(signal.SIGINT)
        end = time.monotonic() + PATIENCE  # two pending signals would be one
        while not any("stopping" in line for line in server.log) and time.monotonic() < end:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGINT)
        with pytest.raises(openai.APIError, match="shutting"):
            list(stream)
        assert server.process.wait(timeout=PATIENCE) == 0


def test_what_cannot_be_served_is_an_error(binary, model, tmp_path):
    def error(*flags: str) -> tuple[int, str]:
        done = subprocess.run(
            [binary, "serve", *flags],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "SLUICE_MODEL": ""},
        )
        assert done.stdout == ""
        return done.returncode, done.stderr

    assert error()[0] == 2
    assert error("-m", model, "--port", "70000")[0] == 2
    assert error("-m", model, "--keepalive", "-1")[0] == 2
    code, text = error("-m", str(tmp_path / "none.gguf"))
    assert code == 1 and "none.gguf" in text
    code, text = error("-m", model, "--host", "256.0.0.1.invalid")
    assert code == 1 and "256.0.0.1.invalid" in text
    with Server(binary, model) as server:
        code, text = error("-m", model, "--port", str(server.address.port))
        assert code == 1 and str(server.address.port) in text
