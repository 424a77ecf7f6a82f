"""src/text's chat templates against transformers' apply_chat_template, on the templates of real
models: llama.cpp's collection, and SmolLM2's own from the default model's file."""

import copy
import json
import os

import pytest
from gguf import GGUFReader
from jinja2 import TemplateError
from probe import LLAMA_CPP, Probe, ProbeError, llama_cpp_file
from transformers.utils.chat_template_utils import _normalize_chat_messages, render_jinja_template

BOS, EOS = "<s>", "</s>"

TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Počasí \"now\" <for> a city & more",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "description": "Město 🏙"},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": "array", "items": {"type": "integer"}},
            "where": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
            "required": ["city"]}}},
    {"type": "function", "function": {"name": "ping", "description": "", "parameters": {
        "type": "object", "properties": {}}}},
]
CALL = {"type": "function", "id": "call_1a2b3", "function": {
    "name": "get_weather",
    "arguments": {"city": "Žďár", "days": [1, 2], "ratio": 0.1, "big": 1e20, "ok": True, "none": None,
                  "where": {"lat": 49.5}}}}

USER = {"role": "user", "content": "Hello, <b>\"world\"</b> & 你好!\n  indented\n"}
ASSISTANT = {"role": "assistant", "content": "Hi there 😀."}
CHATS = {
    "user": [USER],
    "system": [{"role": "system", "content": "  Be brief.  "}, USER],
    "turns": [{"role": "system", "content": "S"}, USER, ASSISTANT, {"role": "user", "content": "And?"}],
    "null_content": [USER, {"role": "assistant", "content": "x", "tool_calls": None, "name": None}, USER],
    "reasoning": [USER, {**ASSISTANT, "reasoning_content": "Let me think.\nYes."}, USER],
    "think_tags": [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nDone."}, USER],
    "tool_call": [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]},
                  {"role": "tool", "name": "get_weather", "tool_call_id": "call_1a2b3",
                   "content": "{\"temp\": 21.5}"}],
    "tool_answered": [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]},
                      {"role": "tool", "name": "get_weather", "tool_call_id": "call_1a2b3", "content": "21"},
                      ASSISTANT, USER],
    "two_calls": [USER, {"role": "assistant", "content": "On it.", "tool_calls": [
        CALL, {**CALL, "id": "call_9z8y7", "function": {"name": "ping", "arguments": {}}}]},
        {"role": "tool", "name": "get_weather", "tool_call_id": "call_1a2b3", "content": "a"},
        {"role": "tool", "name": "ping", "tool_call_id": "call_9z8y7", "content": "b"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "part one "},
                                           {"type": "text", "text": "part two"}]}],
    "developer": [{"role": "developer", "content": "Dev."}, USER],
    "empty": [],
    "assistant_first": [ASSISTANT, USER],
    "unknown_role": [{"role": "nobody", "content": "x"}],
}
KWARGS = [{}, {"enable_thinking": False}, {"enable_thinking": True, "custom_tools": None}]

# Numbers of renders that differ, each with its reason. None may be of a required model.
KNOWN_DIFFERENCES = {
    # Escapes HTML in "text"|safe + str, which marks the sum as HTML in Python; no model was meant
    # to read &#34;.
    "meetkai-functionary-medium-v3.1.jinja": 78,
}

REQUIRED = {
    "SmolLM2": None,
    "Llama 3": "meta-llama-Llama-3.1-8B-Instruct.jinja",
    "Qwen3.5": "Qwen3.5-4B.jinja",
    "Gemma 4": "google-gemma-4-31B-it.jinja",
}


def default_model_template():
    field = GGUFReader(os.environ["SLUICE_DEFAULT_MODEL"]).fields["tokenizer.chat_template"]
    return bytes(field.parts[field.data[0]]).decode()


def source_of(model):
    name = REQUIRED[model]
    if name is None:
        return default_model_template()
    return llama_cpp_file(f"templates/{name}").read_text(encoding="utf-8")


def collection():
    return sorted(path.name for path in (LLAMA_CPP / "models" / "templates").glob("*.jinja"))


def oracle(source, messages, tools, kwargs, add_generation_prompt):
    """(text, None) or (None, error)."""
    messages = _normalize_chat_messages(copy.deepcopy(messages))
    try:
        rendered, _ = render_jinja_template(
            [messages], tools=copy.deepcopy(tools), chat_template=source,
            add_generation_prompt=add_generation_prompt, bos_token=BOS, eos_token=EOS, **kwargs)
        return rendered[0], None
    except Exception as error:  # whatever a template can do in Python
        return None, error


def ours(probe, messages, tools, kwargs, add_generation_prompt):
    try:
        answer = probe.ask("render", messages=json.dumps(messages), tools=json.dumps(tools),
                           kwargs=json.dumps(kwargs), add_generation_prompt=add_generation_prompt)
        return answer["text"], None
    except ProbeError as error:
        return None, error


def cases():
    for chat, messages in CHATS.items():
        for tools in (None, TOOLS):
            for kwargs in KWARGS:
                for prompt in (False, True):
                    yield (chat, bool(tools), tuple(kwargs), prompt), messages, tools, kwargs, prompt


def differences(source):
    """(cases that rendered in Python, list of differences)."""
    probe = Probe()
    rendered, found = 0, []
    try:
        probe.ask("template", source=source, bos=BOS, eos=EOS)
    except ProbeError as error:
        return 0, [f"does not compile: {error}"]
    for label, messages, tools, kwargs, prompt in cases():
        expected, expected_error = oracle(source, messages, tools, kwargs, prompt)
        text, error = ours(probe, messages, tools, kwargs, prompt)
        rendered += expected is not None
        if type(expected_error) is TemplateError:
            # raise_exception: the same refusal, in the same words.
            same = error is not None and str(error) == str(expected_error)
        else:
            # Where Python itself fails (say, iterates over None) there is nothing to be equal to.
            same = expected is None or text == expected
        if not same:
            found.append(f"{label}\n  transformers {expected!r} {expected_error!r}\n"
                         f"  sluice       {text!r} {error!r}")
    probe.close()
    return rendered, found


@pytest.mark.parametrize("model", REQUIRED)
def test_required_model(model):
    rendered, found = differences(source_of(model))
    assert rendered >= 24
    assert not found, "\n".join(found[:3])


def test_the_templates_refuse_some_chats_and_say_why():
    """Guards the comparison of refusals: without one it would compare nothing."""
    _, error = oracle(source_of("Qwen3.5"), [], None, {}, True)
    assert isinstance(error, TemplateError) and str(error)


@pytest.mark.parametrize("name", collection() or ["no templates: run 'make setup'"])
def test_collection(name):
    source = llama_cpp_file(f"templates/{name}").read_text(encoding="utf-8")
    _, found = differences(source)
    known = KNOWN_DIFFERENCES.get(name, 0)
    assert len(found) == known, f"{len(found)} differ\n" + "\n".join(found[:3])
