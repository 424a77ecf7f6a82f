"""sluice inspect: models and the machine, as text and as JSON."""
import json
import os


def test_model_summary(sluice, model):
    done = sluice("inspect", model)
    assert done.returncode == 0, done.stderr
    for text in ("llama", "8192", "Q4_1", "model.layers.*.mlp.up_proj.weight", "134.5 M"):
        assert text in done.stdout, text


def test_model_json_adds_up(sluice, model):
    out = json.loads(sluice("inspect", model, "--json", "--tensors").stdout)
    assert out["supported"] is True
    assert out["num_layers"] == 30
    assert out["file_bytes"] == os.path.getsize(model)
    assert sum(t["bytes"] for t in out["tensors"]) == sum(m["bytes"] for m in out["modules"])
    assert len(out["tensors"]) == sum(m["count"] for m in out["modules"])
    assert "tensors" not in json.loads(sluice("inspect", model, "--json").stdout)


def test_machine(sluice):
    out = json.loads(sluice("inspect", "--machine", "--json").stdout)
    assert os.path.exists(out["mlx_library"])
    assert out["isa"] in out["isas"]
    assert set(out["ops"]) >= {"linear", "embedding", "rms_norm", "rope", "swiglu", "attention"}
    assert out["activations"] in ("int8", "f32") or "=" in out["activations"]
    text = sluice("inspect", "--machine").stdout
    assert out["mlx_version"] in text and "gaps" in text


def test_errors(sluice, model):
    assert sluice("inspect").returncode == 2
    assert sluice("inspect", model, "--machine").returncode == 2
    missing = sluice("inspect", "/no/such/model")
    assert missing.returncode == 1
    assert "/no/such/model" in missing.stderr
