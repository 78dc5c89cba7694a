"""Formulas that a user brings along: a Python file with a dictionary `MODELS`.

    from tracehouse.formulas.user import OpCall, OpWork

    def fused_gemm(call: OpCall) -> OpWork:
        (m, k), (_, n) = call.dims[0], call.dims[1]
        return OpWork(
            flops=2 * m * n * k, bytes=call.bytes(0) + call.bytes(1) + 2 * m * n,
            unit="matrix", precision="bf16", params={"M": m, "N": n, "K": k},
        )

    MODELS = {"mylib::fused_gemm": fused_gemm}

A function is called once per distinct inputs. What it raises becomes the reason why the call has no
FLOPs and bytes. Only a file that the user names is ever run, never one that a trace names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tracehouse.errors import UsageError
from tracehouse.formulas.dtypes import BYTES, dtype_code
from tracehouse.formulas.inputs import Inputs, tensor_bytes

UNITS = ("matrix", "vector", "")
PRECISIONS = ("", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8")


@dataclass(frozen=True, slots=True)
class OpCall:
    """The inputs of one call, each list by position.

    dims: the shape, `[]` for a scalar or an absent tensor, None for a list of tensors. members: the
    shapes of a list of tensors, else None. types: as spelled in the trace. strides: in elements.
    values: text of what is no tensor. A list is empty where the trace did not record it.
    """

    name: str
    dims: list[list[int] | None]
    members: list[list[list[int] | None] | None]
    types: list[str | None]
    strides: list[list[int] | None]
    values: list[str | None]
    _inputs: Inputs = field(repr=False)
    _row: int = field(repr=False)

    def bytes(self, position: int) -> float:
        """Return the bytes of the distinct elements of an input.

        0 where it is no tensor, NaN where its type is not known.
        """
        return float(tensor_bytes(self._inputs, self._row, position))

    def element_bytes(self, position: int) -> float:
        """Return the bytes of an element of an input, NaN where its type is not known."""
        known = position < len(self.types)
        return float(BYTES[dtype_code(self.types[position] if known else None)])


@dataclass(frozen=True, slots=True)
class OpWork:
    """What a call does: FLOPs, bytes moved in device memory, and whose peak bounds it.

    None is unknown. unit: matrix, vector, or "" if it computes nothing. precision: e.g. bf16.
    params: what a person wants to read.
    """

    flops: float | None
    bytes: float | None
    unit: str = "vector"
    precision: str = ""
    params: Mapping[str, int] = field(default_factory=dict)


UserModel = Callable[[OpCall], OpWork]


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of formulas: where it was, and its text."""

    path: str
    text: str

    def models(self) -> Mapping[str, UserModel]:
        """Run the file, once a process, and return its MODELS; UsageError if it has none."""
        return _run(self.path, self.text)


def read_model_file(path: str) -> ModelFile:
    """Read and try a file of formulas; UsageError says what is wrong with it."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the models of {path}: {error}", hint="give a Python file"
        ) from error
    file = ModelFile(path, text)
    file.models()
    return file


@cache
def _run(path: str, text: str) -> Mapping[str, UserModel]:
    scope: dict[str, Any] = {"__name__": "tracehouse_user_models", "__file__": path}
    try:
        exec(compile(text, path, "exec"), scope)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the models of {path} cannot be loaded: {type(error).__name__}: {error}",
            hint="correct the file; `pydoc tracehouse.formulas.user` shows how one looks",
        ) from error
    models = scope.get("MODELS")
    if not isinstance(models, dict) or not all(
        isinstance(name, str) and callable(function) for name, function in models.items()
    ):
        raise UsageError(
            f"{path} has no dictionary MODELS of op name to function",
            hint="`pydoc tracehouse.formulas.user` shows how one looks",
        )
    return models


def evaluated(function: UserModel, call: OpCall) -> tuple[OpWork, str | None]:
    """Return the work of a call, and why some of it is not known."""
    try:
        work = _checked(function(call))
    except (Exception, SystemExit) as error:  # the user's code costs one result, never a trace
        return OpWork(None, None, ""), f"the user's model failed: {type(error).__name__}: {error}"
    unknown = work.flops is None or work.bytes is None
    return work, "the user's model does not say" if unknown else None


def _checked(work: OpWork) -> OpWork:
    if not isinstance(work, OpWork):
        raise TypeError(f"it returned {type(work).__name__}, not OpWork")
    if work.unit not in UNITS:
        raise ValueError(f"unit is {work.unit!r}, not one of {', '.join(UNITS[:2])} or empty")
    if work.precision not in PRECISIONS:
        raise ValueError(f"precision is {work.precision!r}, not one of {', '.join(PRECISIONS[1:])}")
    for name, amount in (("flops", work.flops), ("bytes", work.bytes)):
        if amount is not None and not 0 <= float(amount) < 2**62 and not math.isnan(amount):
            raise ValueError(f"{name} is {amount}")
    params = {str(key): int(value) for key, value in work.params.items()}
    return OpWork(_known(work.flops), _known(work.bytes), work.unit, work.precision, params)


def _known(amount: float | None) -> float | None:
    return None if amount is None or np.isnan(amount) else float(amount)
