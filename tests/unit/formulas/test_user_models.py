from __future__ import annotations

import pytest
from tracegen import Trace

import tracehouse
from tracehouse.errors import UsageError
from tracehouse.formulas.user import read_model_file

FILE = """
from tracehouse.formulas.user import OpCall, OpWork


def scaled(call: OpCall) -> OpWork:
    (m, k), (_, n) = call.dims[0], call.dims[1]
    return OpWork(
        flops=2 * m * n * k * int(call.values[2]),
        bytes=call.bytes(0) + call.bytes(1) + m * n * call.element_bytes(0),
        unit="matrix",
        precision="bf16",
        params={"M": m, "N": n, "K": k},
    )


MODELS = {"my::scaled_mm": scaled, "aten::mm": lambda call: OpWork(7, None)}
"""
BF16 = "c10::BFloat16"


@pytest.fixture
def model_file(tmp_path):
    def write(text=FILE):
        path = tmp_path / "models.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def work(tmp_path, name, args, path):
    drawn = (
        Trace()
        .op(name, 0, 50, **args)
        .launch(5, 4, correlation=1)
        .kernel("k", 60, 10, correlation=1)
    )
    trace = tracehouse.read(drawn.write(tmp_path / "trace.json"), models=[path])
    return trace.op_perf.to_pylist()[0]


def args(scale="3"):
    return {
        "Input Dims": [[64, 32], [32, 16], []],
        "Input type": [BF16, BF16, "Scalar"],
        "Input Strides": [[32, 1], [0, 1], []],
        "Concrete Inputs": ["", "", scale],
    }


def test_a_new_op(tmp_path, model_file):
    row = work(tmp_path, "my::scaled_mm", args(), model_file())
    assert row["flops"] == 2 * 64 * 16 * 32 * 3
    assert row["bytes"] == 2 * (64 * 32 + 16 + 64 * 16)  # the second operand repeats a row
    assert (row["compute_spec"], row["params"]) == ("matrix_bf16", '{"M": 64, "N": 16, "K": 32}')
    assert (row["counted"], row["why"]) == (True, None)


def test_a_users_formula_goes_before_ours(tmp_path, model_file):
    row = work(tmp_path, "aten::mm", args(), model_file())
    assert (row["flops"], row["bytes"], row["why"]) == (7, None, "the user's model does not say")


def test_what_it_raises_is_the_reason(tmp_path, model_file):
    row = work(tmp_path, "my::scaled_mm", args(scale="x"), model_file())
    assert (row["flops"], row["kernel_time_ns"]) == (None, 10_000)
    assert row["why"].startswith("the user's model failed: ValueError: invalid literal")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("5", "it returned int, not OpWork"),
        ("OpWork(-1, 2)", "flops is -1"),
        ("OpWork(1, float('inf'))", "bytes is inf"),
        ("OpWork(1, 2, unit='tensor')", "unit is 'tensor'"),
        ("OpWork(1, 2, precision='fp7')", "precision is 'fp7'"),
    ],
)
def test_a_wrong_result_is_told(tmp_path, model_file, result, words):
    text = "from tracehouse.formulas.user import OpWork\n"
    path = model_file(f"{text}MODELS = {{'my::op': lambda call: {result}}}\n")
    row = work(tmp_path, "my::op", args(), path)
    assert row["flops"] is None
    assert words in row["why"]


def test_nan_is_unknown(tmp_path, model_file):
    text = "from tracehouse.formulas.user import OpWork\n"
    path = model_file(f"{text}MODELS = {{'my::op': lambda call: OpWork(float('nan'), 1)}}\n")
    row = work(tmp_path, "my::op", args(), path)
    assert (row["flops"], row["bytes"]) == (None, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def broken(:", "cannot be loaded: SyntaxError"),
        ("1 / 0", "cannot be loaded: ZeroDivisionError"),
        ("import sys; sys.exit(0)", "cannot be loaded: SystemExit"),
        ("X = 1", "has no dictionary MODELS"),
        ("MODELS = {'a': 1}", "has no dictionary MODELS"),
    ],
)
def test_a_file_that_cannot_be_used(model_file, text, words):
    path = model_file(text)
    with pytest.raises(UsageError, match=words) as caught:
        read_model_file(str(path))
    assert str(path) in str(caught.value)


def test_no_file(tmp_path):
    with pytest.raises(UsageError, match="cannot read the models of"):
        read_model_file(str(tmp_path / "none.py"))


def test_no_trace_names_a_file(tmp_path, model_file):
    """A name in a trace is never a path, and never run."""
    path = model_file("MODELS = {}\nraise SystemExit(3)\n")
    drawn = Trace(models=str(path)).op(str(path), 0, 50, models=str(path))
    tracehouse.read(drawn.write(tmp_path / "trace.json"))
