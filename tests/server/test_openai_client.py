"""The real `openai` client against the server over the null service (null_server.cpp)."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import openai
import pytest

BINARY = Path(os.environ["SLUICE_BINARY_DIR"]) / "tests" / "server" / "null_server"
HELLO = [{"role": "user", "content": "hello naïve world 😀"}]
PATIENCE = 20  # seconds


class NullServer:
    """A running null_server; a context manager that stops it and checks that it ends well."""

    def __init__(self, *flags: str):
        self.process = subprocess.Popen(
            [BINARY, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        assert line.startswith("listening on "), self.process.stderr.read()
        self.url = line.split()[-1]
        self.log: list[str] = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr))
        self.reader.start()
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0)

    def health(self) -> dict:
        with urllib.request.urlopen(f"{self.url}/health", timeout=PATIENCE) as answer:
            return json.load(answer)

    def wait_for_rows(self, count: int) -> bool:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.health()["running"] == count:
                return True
            time.sleep(0.01)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.process.terminate()
        assert self.process.wait(timeout=PATIENCE) == 0
        self.reader.join(timeout=PATIENCE)


@pytest.fixture(scope="module")
def server():
    with NullServer("--context", "4096") as running:
        yield running


@pytest.fixture
def client(server):
    return server.client


def chat(client, **settings):
    return client.chat.completions.create(model="null", messages=HELLO, **settings)


def script(name: str) -> dict:
    return {"extra_body": {"chat_template_kwargs": {"script": name}}}


def test_lists_and_retrieves_models(client):
    assert [model.id for model in client.models.list()] == ["null"]
    assert client.models.retrieve("null").object == "model"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("other")
    assert error.value.code == "model_not_found"


def test_chats(client):
    answer = chat(client)
    choice = answer.choices[0]
    assert choice.message.content == HELLO[0]["content"]
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens == 0
    assert chat(client, max_completion_tokens=2).choices[0].finish_reason == "length"


def test_streamed_text_equals_the_whole(client):
    settings = {"max_tokens": 50, "extra_body": {"ignore_eos": True}}
    whole = chat(client, **settings).choices[0].message.content
    chunks = list(chat(client, stream=True, **settings))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(delta.content or "" for delta in deltas) == whole
    assert deltas[0].role == "assistant"
    assert all(delta.content != "" and delta.role is None for delta in deltas[1:])
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].choices[0].finish_reason == "length"


def test_usage_comes_last_in_a_stream(client):
    whole = chat(client)
    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage


def test_logprobs_of_whole_and_stream_agree(client):
    settings = {"logprobs": True, "top_logprobs": 3}
    whole = chat(client, **settings).choices[0].logprobs.content
    streamed = [
        token
        for chunk in chat(client, stream=True, **settings)
        if chunk.choices[0].logprobs
        for token in chunk.choices[0].logprobs.content
    ]
    assert streamed == whole
    assert b"".join(bytes(t.bytes) for t in whole).decode() == HELLO[0]["content"]
    assert all(len(t.top_logprobs) == 3 and t.top_logprobs[0].token == t.token for t in whole)


def test_completions(client):
    answer = client.completions.create(model="null", prompt=["one", "two"], logprobs=1)
    assert [choice.text for choice in answer.choices] == ["one", "two"]
    assert answer.choices[0].logprobs.tokens == ["one"]
    streamed = {0: "", 1: ""}
    for chunk in client.completions.create(model="null", prompt=["one", "two"], stream=True):
        streamed[chunk.choices[0].index] += chunk.choices[0].text
    assert streamed == {0: "one", 1: "two"}


def test_stop_strings(client):
    choice = chat(client, stop=["world"]).choices[0]
    assert choice.message.content == "hello naïve "
    assert choice.finish_reason == "stop"


def test_reasoning_is_apart_from_the_answer(client):
    message = chat(client, **script("reasoning")).choices[0].message
    assert message.content == "The answer is 42."
    assert message.reasoning_content == "Let me think."
    streamed = list(chat(client, stream=True, **script("reasoning")))
    assert "".join(c.choices[0].delta.content or "" for c in streamed) == message.content


def test_tool_calls(client):
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    choice = chat(client, tools=tools, **script("tools")).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    calls = [(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls]
    assert calls == [("call_a", "weather", '{"city":"Graz"}'), ("call_b", "time", "{}")]

    # The client's own folding of the stream, from its helper for streams.
    with client.chat.completions.stream(
        model="null", messages=HELLO, tools=tools, **script("tools")
    ) as stream:
        final = stream.get_final_completion().choices[0]
    calls = [(c.id, c.function.name, c.function.arguments) for c in final.message.tool_calls]
    assert calls == [("call_a", "weather", '{"city":"Graz"}'), ("call_b", "time", "{}")]


def test_errors_are_the_clients_own_types(client):
    with pytest.raises(openai.BadRequestError) as error:
        chat(client, max_tokens=-1)
    assert error.value.param == "max_tokens"
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(
            model="null", messages=[{"role": "user", "content": "x" * 20000}]
        )
    assert error.value.code == "context_length_exceeded"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-5", messages=HELLO)
    with pytest.raises(openai.InternalServerError, match="the step failed"):
        chat(client, **script("failure"))


def test_a_failure_in_mid_stream_is_an_error(client):
    text = ""
    with pytest.raises(openai.APIError, match="the step failed"):
        for chunk in chat(client, stream=True, **script("failure")):
            text += chunk.choices[0].delta.content or ""
    assert text == "So far so good"


def test_a_cancelled_stream_frees_its_row():
    with NullServer("--tokens-per-second", "50", "--context", "100000") as server:
        settings = {"max_tokens": 90000, "stream": True, "extra_body": {"ignore_eos": True}}
        stream = server.client.completions.create(model="null", prompt="abcd", **settings)
        next(stream)
        assert server.health()["running"] == 1
        stream.close()
        assert server.wait_for_rows(0)
    assert any("outcome=client_gone" in line for line in server.log)


def test_request_ids_and_log_lines():
    with NullServer() as server:
        headers = {"x-request-id": "trace-7"}
        raw = server.client.chat.completions.with_raw_response.create(
            model="null", messages=HELLO, extra_headers=headers
        )
        assert raw.headers["x-request-id"] == "trace-7"
    line = next(line for line in server.log if "id=trace-7" in line)
    for part in ("route=/v1/chat/completions", "status=200", "outcome=ok", "completion_tokens=6"):
        assert part in line


def test_concurrent_streams_do_not_mix(client):
    def run(number: int) -> None:
        text = f"nonce-{number}-" * 20
        stream = client.chat.completions.create(
            model="null", messages=[{"role": "user", "content": text}], stream=True
        )
        got[number] = "".join(chunk.choices[0].delta.content or "" for chunk in stream) == text

    got: dict[int, bool] = {}
    threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == dict.fromkeys(range(16), True)
