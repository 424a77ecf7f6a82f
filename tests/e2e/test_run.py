"""sluice run: prompts in, text or JSON out, errors and exit codes."""
import json
import signal
import subprocess
import time

QUESTION = "What is the capital of France?"


def test_the_default_model_names_paris(sluice, model):
    done = sluice("run", "--model", model, "--chat", "-p", QUESTION)
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout
    assert "<|im_end|>" not in done.stdout
    assert done.stderr == ""


def test_prompt_from_stdin_and_model_from_the_environment(sluice, model):
    given = sluice("run", "-p", "-", "-n", 8, stdin="Once upon a time", env={"SLUICE_MODEL": model})
    assert given.returncode == 0, given.stderr
    same = sluice("run", "-m", model, "-p", "Once upon a time", "-n", 8)
    assert given.stdout == same.stdout != ""


def run_json(sluice, model, *arguments):
    done = sluice("run", "-m", model, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_json_has_ids_logprobs_usage_and_timings(sluice, model):
    out = run_json(sluice, model, "-p", "The sky is", "-n", 5, "--ignore-eos", "--logprobs", 2)
    assert out["finish_reason"] == "length"
    assert len(out["tokens"]) == len(out["logprobs"]) == out["usage"]["completion_tokens"] == 5
    assert out["usage"]["prompt_tokens"] == 3
    for token, entry in zip(out["tokens"], out["logprobs"]):
        assert entry["id"] == token == entry["top"][0]["id"]  # greedy: the most likely one
        assert entry["logprob"] == entry["top"][0]["logprob"] < 0
        assert entry["top"][0]["logprob"] >= entry["top"][1]["logprob"]
        assert bytes(entry["bytes"]).decode() == entry["token"]
    assert "".join(entry["token"] for entry in out["logprobs"]) == out["text"]
    assert out["timings"]["prefill_seconds"] > 0


def test_seeds_repeat_and_differ(sluice, model):
    flags = ["-p", "A story:", "-n", 12, "--temperature", 1, "--ignore-eos"]
    first = run_json(sluice, model, *flags, "--seed", 1)
    assert run_json(sluice, model, *flags, "--seed", 1)["tokens"] == first["tokens"]
    assert run_json(sluice, model, *flags, "--seed", 2)["tokens"] != first["tokens"]
    free = run_json(sluice, model, *flags)
    assert run_json(sluice, model, *flags, "--seed", free["seed"])["tokens"] == free["tokens"]


def test_stop_strings_end_the_text_across_token_borders(sluice, model):
    whole = run_json(sluice, model, "-p", "Count: one, two,", "-n", 16, "--ignore-eos")["text"]
    # From the middle of one token into the next, wherever tokens begin.
    stop = whole[len(whole) // 2 - 3 : len(whole) // 2 + 3]
    out = run_json(
        sluice, model, "-p", "Count: one, two,", "-n", 16, "--ignore-eos", "--stop", stop
    )
    assert out["text"] == whole[: whole.index(stop)]
    assert out["finish_reason"] == "stop"
    assert out["stop_string"] == stop


def test_min_tokens_hold_the_end_back(sluice, model):
    flags = ["--chat", "-p", QUESTION]
    short = run_json(sluice, model, *flags)
    assert short["finish_reason"] == "stop"
    count = short["usage"]["completion_tokens"]
    longer = run_json(sluice, model, *flags, "--min-tokens", count + 5)
    assert longer["usage"]["completion_tokens"] >= count + 5
    assert longer["tokens"][: count - 1] == short["tokens"][: count - 1]


def test_logit_bias_bans_a_token(sluice, model):
    flags = ["-p", "The sky is", "-n", 1]
    first = run_json(sluice, model, *flags)["tokens"][0]
    assert run_json(sluice, model, *flags, "--logit-bias", f"{first}=-100")["tokens"][0] != first


def test_modes_kernels_and_cuts_agree_where_they_must(sluice, model):
    flags = ["-p", "The sky is blue because", "-n", 8, "--ignore-eos"]
    expected = run_json(sluice, model, *flags)["tokens"]
    for variant in (["--isa", "generic"], ["--threads", 1], ["--prefill-chunk", 1]):
        assert run_json(sluice, model, *flags, *variant)["tokens"] == expected


def test_reference_mode_and_kernel_check_run(sluice, model):
    done = sluice("run", "-m", model, "--mode", "reference", "-p", "Hello", "-n", 2)
    assert done.returncode == 0, done.stderr
    done = sluice("run", "-m", model, "--check-kernels", "-p", "Hello", "-n", 2)
    assert done.returncode == 0, done.stderr
    assert "attention" in done.stderr and "max error" in done.stderr


def test_stats_go_to_stderr(sluice, model):
    done = sluice("run", "-m", model, "-p", "Hello", "-n", 4, "--stats")
    assert "tok/s" in done.stderr and "tok/s" not in done.stdout


def test_errors_say_what_is_wrong(sluice, model, tmp_path):
    def error(*arguments):
        done = sluice("run", *arguments)
        assert done.returncode == 1, (arguments, done.stderr)
        assert done.stdout == ""
        assert done.stderr.startswith("sluice: ")
        return done.stderr

    assert "nowhere.gguf" in error("-m", "/nowhere.gguf", "-p", "x")
    junk = tmp_path / "junk.gguf"
    junk.write_bytes(b"not a model at all")
    assert "junk.gguf" in error("-m", junk, "-p", "x")
    assert str(tmp_path) in error("-m", tmp_path, "-p", "x")
    assert "temperature" in error("-m", model, "-p", "x", "--temperature", "-1")
    assert "top_k" in error("-m", model, "-p", "x", "--top-k", 10**6)
    assert "logit-bias" in error("-m", model, "-p", "x", "--logit-bias", "nonsense")
    assert "turbo" in error("-m", model, "-p", "x", "--kernels", "turbo")
    too_long = error("-m", model, "-p", "x", "-n", 9000)
    assert "9001" in too_long and "8192" in too_long
    assert "empty" in error("-m", model, "-p", "")


def test_usage_errors_have_their_own_code(sluice, model):
    for arguments in (
        ["run", "--model", model],
        ["run", "-m", model, "-p", "x", "--no-such-flag"],
        ["run", "-m", model, "-p", "x", "--mode", "hasty"],
        ["run", "-m", model, "-p", "x", "--logprobs", 2],
        ["jump"],
        [],
    ):
        assert sluice(*arguments, env={"SLUICE_MODEL": ""}).returncode == 2, arguments
    assert sluice("--help").returncode == 0
    assert sluice("--version").stdout.startswith("sluice ")


def test_ctrl_c_ends_with_130_and_keeps_what_was_said(binary, model):
    process = subprocess.Popen(
        [binary, "run", "-m", model, "-p", "Once", "-n", "4000", "--ignore-eos"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert first and rest.endswith(b"\n")
    assert time.monotonic() - start < 30


def test_activations(sluice, model):
    """Of linear layers: int8 and float32 give other log-probabilities, but not far apart."""

    def answer(*flags):
        prompt = ["-p", "The capital of France is", "-n", "4", "--json", "--logprobs", "0"]
        done = sluice("run", "--model", model, *prompt, *flags)
        assert done.returncode == 0, done.stderr
        out = json.loads(done.stdout)
        return out, [entry["logprob"] for entry in out["logprobs"]]

    f32, f32_logprobs = answer("--activations", "f32")
    int8, int8_logprobs = answer("--activations", "int8")
    assert (f32["activations"], int8["activations"]) == ("f32", "int8")
    assert f32["tokens"] == int8["tokens"]
    assert f32_logprobs != int8_logprobs
    assert max(abs(a - b) for a, b in zip(f32_logprobs, int8_logprobs)) < 0.2
    assert answer("--activations", "int8,head=f32")[0]["activations"] == "int8,head=f32"
    assert answer("--kernels", "reference")[0]["activations"] == ""


def test_activations_that_do_not_exist(sluice, model):
    for flags in (["--activations", "int4"], ["--activations", "int8", "--mode", "reference"]):
        done = sluice("run", "--model", model, "-p", "x", *flags)
        assert done.returncode == 1
        assert "int" in done.stderr and "known are" in done.stderr or "own kernels" in done.stderr
