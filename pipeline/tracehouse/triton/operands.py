"""The inputs of compiled kernels' launches: integers among the values, widths of the types."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehouse.formulas.dtypes import NONE, UNKNOWN, dtype_code
from tracehouse.formulas.inputs import A_TEXT, Inputs, parse_value
from tracehouse.triton.pointers import element_bytes

Ints = NDArray[np.int64]

NO_TENSOR = -1.0
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_LARGEST = 2**62
_NO_TENSORS = frozenset(
    {"", "Scalar", "ScalarList", "GenericList", "TensorList", "OptionalTensorList", "None"}
)


class Operands(NamedTuple):
    """The inputs of n signatures as a launch needs them.

    inputs: shapes and types (formulas.inputs). ints_row (n + 1,), ints: the integers among the
    values of each row in their order. width, dtype: of each recorded type, in the order of
    inputs.TYPES: bytes of an element (NaN if not known, NO_TENSOR if it is none), and its code.
    odd: rows with a value or type that cannot be read, each with one such word.
    """

    inputs: Inputs
    ints_row: Ints
    ints: Ints
    width: NDArray[np.float64]
    dtype: Ints
    odd: dict[int, str]


def read_operands(signatures: pa.Table, inputs: Inputs) -> Operands:
    """Read what `inputs`, of the same rows, does not hold; each distinct word once."""
    rows, words = _flat(signatures, "concrete_inputs")
    more_rows, more_words = _flat(signatures, "extra_inputs")  # a compiler's constants
    row = np.concatenate([rows, more_rows])
    order = np.argsort(row, kind="stable")
    codes, distinct = _coded(pa.concat_arrays([words, more_words]))
    values = [integer(word) for word in distinct]
    is_integer = np.array([value is not None for value in values], dtype=np.bool_)[codes][order]
    value = np.array([value or 0 for value in values], dtype=np.int64)[codes][order]
    ints_row = np.zeros(len(signatures) + 1, dtype=np.int64)
    np.cumsum(np.bincount(row[order][is_integer], minlength=len(signatures)), out=ints_row[1:])
    odd = _odd_words(row, codes, distinct, [parse_value(word)[0] == A_TEXT for word in distinct])
    type_rows, types = _flat(signatures, "input_types")
    codes, distinct = _coded(types)
    widths = [_width(word) for word in distinct]
    odd |= _odd_words(type_rows, codes, distinct, [math.isnan(width) for width in widths])
    return Operands(
        inputs,
        ints_row,
        value[is_integer],
        np.array(widths, dtype=np.float64)[codes],
        np.array([_dtype(word) for word in distinct], dtype=np.int64)[codes],
        odd,
    )


def _odd_words(
    row: Ints, codes: Ints, distinct: list[str | None], is_odd: list[bool]
) -> dict[int, str]:
    at = np.flatnonzero(np.array(is_odd, dtype=np.bool_)[codes])
    return {int(row[i]): distinct[codes[i]] or "" for i in at[::-1].tolist()}


def integer(word: str | None) -> int | None:
    """Return a decimal integer; None for all else, and for one that no size can have."""
    if word is None or _INTEGER.fullmatch(word) is None:
        return None
    value = int(word)
    return value if abs(value) < _LARGEST else None


def is_tensor(type_: str | None) -> bool:
    """Whether an input of this type is a tensor, be its type known or not."""
    return type_ is not None and type_ not in _NO_TENSORS


def known_dtype(type_: str) -> int:
    """Return the code of a type, in any spelling of a trace or of Triton; UNKNOWN if not known."""
    name = type_.removeprefix("*").removeprefix("torch.")
    code = dtype_code(_TRITON.get(name, name))
    return dtype_code(name.replace("c10::", "")) if code == UNKNOWN else code


_TRITON = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "f16": "float16",
    "fp32": "float32",
    "f32": "float32",
    "fp64": "float64",
    "f64": "float64",
    "i1": "bool",
    "u8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
}


def _width(type_: str | None) -> float:
    if not is_tensor(type_):
        return NO_TENSOR
    known = element_bytes(type_ or "")
    return np.nan if known is None else known


def _dtype(type_: str | None) -> int:
    return known_dtype(type_) if type_ is not None and is_tensor(type_) else NONE


def _flat(table: pa.Table, name: str) -> tuple[Ints, pa.Array]:
    """Return the row of each value of a list column, and the values."""
    lists = pa.concat_arrays([*table[name].chunks, pa.array([], table.schema.field(name).type)])
    return np.asarray(pc.list_parent_indices(lists), dtype=np.int64), pc.list_flatten(lists)


def _coded(words: pa.Array) -> tuple[Ints, list[str | None]]:
    encoded = words.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
