"""`--model-config`: attention of `analyze` and `steps`, as a user runs them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from tracegen import Trace

STEP = "execute_2048_context_1(sq2048sk6144sqsq4194304sqsk12582912)_generation_0(sq0sk0sqsq0sqsk0)"
CONFIG = {
    **{"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096},
    "torch_dtype": "bfloat16",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A trace without recorded shapes, the model's configuration, and an odd one."""
    folder = tmp_path_factory.mktemp("served")
    trace = Trace().annotation(STEP, 0, 900)
    trace.op("vllm::unified_attention_with_output", 10, 50).launch(20, 4, correlation=1)
    trace.kernel("attention", 100, 500, correlation=1).write(folder / "run.json")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    odd = CONFIG | {"num_key_value_heads": 7}
    (folder / "odd.json").write_text(json.dumps(odd), encoding="utf-8")
    return folder


def test_steps_of_a_trace(tracehouse, folder):
    options = ("--model-config", folder / "config.json")
    result = tracehouse("steps", folder / "run.json", *options)
    assert result.returncode == 0, result.stderr
    assert "attention by phase" in result.stdout
    (line,) = (x for x in result.stdout.splitlines() if "vllm::unified_attention" in x)
    # 171,798,691,840 FLOPs in 500 µs; 989.5 TFLOPS need 173.6 µs
    assert line.split()[:4] == ["prefill", "vllm::unified_attention_with_output", "32/8", "128"]
    assert "343.597" in line
    assert line.split()[-3:] == ["34.72", "%", "compute"]
    assert "heads of the whole model" in result.stdout


def test_a_warehouse_follows_the_configuration(tracehouse, folder):
    out = folder / "out"
    args = ("analyze", folder / "run.json", "-o", out, "--workers", "1")
    assert tracehouse(*args).returncode == 0
    options = ("--table", "attention_summary", "--format", "csv")

    def summary():
        result = tracehouse("steps", out, *options)
        assert result.returncode == 0, result.stderr
        (row,) = csv.DictReader(io.StringIO(result.stdout))
        return row

    assert (summary()["flops"], summary()["h_q"]) == ("", "")
    assert "its inputs were not recorded" in summary()["why"]
    again = tracehouse(*args, "--model-config", folder / "config.json")
    assert again.returncode == 0, again.stderr
    row = summary()  # another choice: analysed again
    assert (row["flops"], row["bytes"], row["source"]) == (
        *("171798691840", "58720256", "model_config"),
    )
    page = ("--model-config", folder / "config.json", *options)
    from_file = tracehouse("steps", folder / "run.json", *page).stdout
    assert list(csv.DictReader(io.StringIO(from_file))) == [row]
    refused = tracehouse("steps", out, "--model-config", folder / "config.json")
    assert refused.returncode == 2
    assert "give --step-pattern and --model-config to analyze" in refused.stderr


@pytest.mark.parametrize("command", ["analyze", "steps"])
def test_an_odd_configuration(tracehouse, folder, command):
    args = (command, folder / "run.json", "--model-config", folder / "odd.json")
    if command == "analyze":
        args = (*args, "-o", folder / "unused")
    result = tracehouse(*args)
    assert result.returncode == 2
    assert "32 query heads do not divide among 7 of keys" in result.stderr
    assert "odd.json" in result.stderr
    assert result.stdout == ""
