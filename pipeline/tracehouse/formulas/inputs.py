"""The inputs of op calls as flat arrays, and how a formula reads them.

`read_inputs` takes the buffers of the table `signatures`. A formula asks for input `i` of row `r`:
an input that was not recorded has rank -1, a scalar or absent tensor rank 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES, FIRST_TENSOR_TYPE, NONE, UNKNOWN, dtype_code

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

# What a concrete value is.
NO_VALUE, A_BOOL, AN_INT, A_REAL, A_LIST, A_TEXT = 0, 1, 2, 3, 4, 5
_WORDS = {"True": 1.0, "False": 0.0}
_MOST_ITEMS = 64


# The sections of Inputs.integers, in their order. For the lists of a row, `…_ROW` (n+1,) says where
# its inputs begin; for the list of an input, `…_ARG` says where its numbers begin.
(
    DIMS_ROW,
    DIMS_ARG,
    DIMS,
    TYPES_ROW,
    TYPES,
    STRIDES_ROW,
    STRIDES_ARG,
    STRIDES,
    VALUES_ROW,
    KIND,
    ITEMS_ARG,
    MEMBERS_ROW,
    MEMBERS_ARG,
    MEMBERS_DIM,
    MEMBERS,
    ITEMS,  # where the numbers of lists begin in Inputs.reals
) = range(16)
_SECTIONS = 16


class Inputs(NamedTuple):
    """The inputs of n signatures, in the form of Arrow's offsets and values.

    integers: where each section begins, then the sections, end to end: shapes and strides in
    elements, types as codes of dtypes.py, what each concrete value is. reals: the number of each
    concrete value, NaN if it is none, then the numbers of those that are lists. Two arrays, not
    one a section: each array that a routine is given costs time to compile.
    """

    integers: Ints
    reals: Reals

    def section(self, section: int) -> Ints:
        """Return a section of `integers`."""
        end = len(self.integers) if section == MEMBERS else int(self.integers[section + 1])
        return self.integers[int(self.integers[section]) : end]


def read_inputs(signatures: pa.Table) -> Inputs:
    """Read the inputs of all rows of the table `signatures` (schema/tables.py).

    Shapes and types are taken from the buffers as they are; each distinct concrete value is parsed
    once.
    """
    dims_row, dims_lists = _lists(signatures, "input_dims")
    dims_arg, dims = _split(dims_lists)
    strides_row, strides_lists = _lists(signatures, "input_strides")
    strides_arg, strides = _split(strides_lists)
    members_row, members_lists = _lists(signatures, "member_dims")
    members_arg, members_shapes = _split(members_lists)
    members_dim, members = _split(members_shapes)
    types_row, type_words = _lists(signatures, "input_types")
    codes, words = _coded(type_words)
    types = np.array([dtype_code(word) for word in words], dtype=np.int64)[codes]
    values_row, value_words = _lists(signatures, "concrete_inputs")
    codes, words = _coded(value_words)
    parsed = [parse_value(word) for word in words]
    lengths = np.array([len(p[2]) for p in parsed], dtype=np.int64)
    begins = np.zeros(len(codes) + 1, dtype=np.int64)
    np.cumsum(lengths[codes], out=begins[1:])
    items = [number for code in codes[lengths[codes] > 0].tolist() for number in parsed[code][2]]
    value = np.array([p[1] for p in parsed], dtype=np.float64)[codes]
    sections = (
        dims_row,
        dims_arg,
        _integers(dims),
        types_row,
        types,
        strides_row,
        strides_arg,
        _integers(strides),
        values_row,
        np.array([p[0] for p in parsed], dtype=np.int64)[codes],
        begins,
        members_row,
        members_arg,
        members_dim,
        _integers(members),
    )
    ends = _SECTIONS + np.cumsum([len(section) for section in sections])
    starts = np.array([_SECTIONS, *ends[:-1], len(value)], dtype=np.int64)
    return Inputs(
        np.concatenate([starts, *sections]),
        np.concatenate([value, np.array(items, dtype=np.float64)]),
    )


def unusable_rows(signatures: pa.Table, inputs: Inputs) -> NDArray[np.bool_]:
    """Tell which rows (n,) have a shape that cannot be.

    A size below 0, or no shape for an input whose type is that of a tensor: a formula would take
    it for a number.
    """
    size = len(signatures)
    dims_row, types_row = inputs.section(DIMS_ROW), inputs.section(TYPES_ROW)
    row = np.repeat(np.arange(size), np.diff(dims_row))
    place = np.arange(len(row)) - dims_row[row] + types_row[row]
    has_type = place < types_row[row + 1]
    codes = np.full(len(row), NONE, dtype=np.int64)
    codes[has_type] = inputs.section(TYPES)[place[has_type]]
    shapes = _lists(signatures, "input_dims")[1]
    lacking = ~shapes.is_valid().to_numpy(zero_copy_only=False) & (codes >= FIRST_TENSOR_TYPE)
    unusable = np.zeros(size, dtype=np.bool_)
    unusable[row[lacking]] = True
    below = np.flatnonzero(inputs.section(DIMS) < 0)
    unusable[row[np.searchsorted(inputs.section(DIMS_ARG), below, side="right") - 1]] = True
    return unusable


def _lists(table: pa.Table, name: str) -> tuple[Ints, pa.Array]:
    """Return the offsets and the values of a list column; a NULL is an empty list."""
    return _split(
        pa.concat_arrays([*table[name].chunks, pa.array([], table.schema.field(name).type)])
    )


def _split(lists: pa.Array) -> tuple[Ints, pa.Array]:
    lengths = np.diff(lists.offsets.to_numpy())
    if lists.null_count:
        lengths = np.where(lists.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    offsets = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets, lists.flatten()


def _integers(values: pa.Array) -> Ints:
    return np.array(values.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _coded(words: pa.Array) -> tuple[Ints, list[str | None]]:
    """Return the codes of words and the distinct words; NULL is one of them."""
    encoded = words.dictionary_encode("encode")
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()


def parse_value(text: str | None) -> tuple[int, float, tuple[float, ...]]:
    """Parse a concrete value as traces write it: its kind, its number, the numbers of a list.

    Lists such as `[1, 2]` and `[True, False]` hold numbers only, or they are a text; one of more
    than 64 items is a text too. Nothing is evaluated (perf_models C40).
    """
    if text is None or text in ("", "None"):
        return NO_VALUE, math.nan, ()
    if text in _WORDS:
        return A_BOOL, _WORDS[text], ()
    if text[0] == "[" and text[-1] == "]":
        words = [word.strip() for word in text[1:-1].split(",")] if text[1:-1].strip() else []
        items = [_number(word) for word in words]
        if len(items) <= _MOST_ITEMS and all(item is not None for item in items):
            return A_LIST, math.nan, tuple(item for item in items if item is not None)
        return A_TEXT, math.nan, ()
    number = _number(text)
    if number is None:
        return A_TEXT, math.nan, ()
    return (AN_INT if text.lstrip("+-").isdigit() else A_REAL), number, ()


def _number(word: str) -> float | None:
    if word in _WORDS:
        return _WORDS[word]
    if len(word) > 40 or "_" in word or not word.isascii() or word != word.strip():
        return None
    try:
        return float(word)
    except ValueError:
        return None


@njit
def _at(x: Inputs, section: int, i: int) -> int:
    """Return number i of a section."""
    return x.integers[x.integers[section] + i]


@njit
def _length(x: Inputs, section: int, i: int) -> int:
    """Return the length of list i of a section of offsets."""
    at = x.integers[section] + i
    return x.integers[at + 1] - x.integers[at]


@njit
def count(x: Inputs, r: int) -> int:
    """Return how many inputs of row r have a shape recorded."""
    return _length(x, DIMS_ROW, r)


@njit
def rank(x: Inputs, r: int, i: int) -> int:
    """Return the number of dimensions of input i; -1 if it was not recorded, or i is negative."""
    if i < 0 or i >= _length(x, DIMS_ROW, r):
        return -1
    at = _at(x, DIMS_ROW, r) + i
    return _at(x, DIMS_ARG, at + 1) - _at(x, DIMS_ARG, at)


@njit
def dim(x: Inputs, r: int, i: int, d: int) -> int:
    """Return dimension d of input i, from the end if negative; -1 if there is none."""
    dims = rank(x, r, i)
    d = d + dims if d < 0 else d
    if d < 0 or d >= dims:
        return -1
    return _at(x, DIMS, _at(x, DIMS_ARG, _at(x, DIMS_ROW, r) + i) + d)


@njit
def dtype(x: Inputs, r: int, i: int) -> int:
    """Return the type code of input i; NONE for no tensor, UNKNOWN where no types were recorded."""
    types = _length(x, TYPES_ROW, r)
    if types == 0:
        return UNKNOWN
    if i < 0 or i >= types:
        return NONE
    return _at(x, TYPES, _at(x, TYPES_ROW, r) + i)


@njit
def is_tensor(x: Inputs, r: int, i: int) -> bool:
    """Tell whether input i is a tensor.

    An absent one is written as a shape of no dimensions without a type; so is a scalar.
    """
    dims = rank(x, r, i)
    if dims < 0:
        return False
    code = dtype(x, r, i)
    return dims > 0 if code == UNKNOWN else code >= FIRST_TENSOR_TYPE


@njit
def numel(x: Inputs, r: int, i: int) -> float:
    """Return the number of elements of input i (1 without dimensions); NaN if not recorded."""
    dims = rank(x, r, i)
    if dims < 0:
        return math.nan
    product = 1.0
    for d in range(dims):
        product *= dim(x, r, i, d)
    return product


@njit
def touched(x: Inputs, r: int, i: int) -> float:
    """Return how many distinct elements of input i lie in memory.

    Without strides that is all of them. A dimension of stride 0 repeats; overlapping windows reach
    no further than their last element. Source: perf_models A0 (broadcast inputs).
    """
    dims = rank(x, r, i)
    everything = numel(x, r, i)
    if i < 0 or i >= _length(x, STRIDES_ROW, r):
        return everything
    at = _at(x, STRIDES_ROW, r) + i
    first = _at(x, STRIDES_ARG, at)
    if _at(x, STRIDES_ARG, at + 1) - first != dims or dims == 0 or everything == 0:
        return everything
    product, reach = 1.0, 1.0
    for d in range(dims):
        stride = abs(_at(x, STRIDES, first + d))
        size = dim(x, r, i, d)
        reach += (size - 1.0) * stride
        if stride != 0:
            product *= size
    return min(product, reach)


@njit
def tensor_bytes(x: Inputs, r: int, i: int) -> float:
    """Return the bytes of the distinct elements of input i.

    0 where it is no tensor, NaN where its type is unknown.
    """
    if not is_tensor(x, r, i):
        return 0.0
    return touched(x, r, i) * BYTES[dtype(x, r, i)]


@njit
def members(x: Inputs, r: int, i: int) -> int:
    """Return how many tensors are in input i, a list of them; 0 if it is no list."""
    if i < 0 or i >= _length(x, MEMBERS_ROW, r):
        return 0
    at = _at(x, MEMBERS_ROW, r) + i
    return _at(x, MEMBERS_ARG, at + 1) - _at(x, MEMBERS_ARG, at)


@njit
def member_rank(x: Inputs, r: int, i: int, m: int) -> int:
    """Return the number of dimensions of tensor m of the list that is input i; -1 if none."""
    if m < 0 or m >= members(x, r, i):
        return -1
    at = _at(x, MEMBERS_ARG, _at(x, MEMBERS_ROW, r) + i) + m
    return _at(x, MEMBERS_DIM, at + 1) - _at(x, MEMBERS_DIM, at)


@njit
def member_dim(x: Inputs, r: int, i: int, m: int, d: int) -> int:
    """Return dimension d of tensor m of the list that is input i, from the end if negative."""
    dims = member_rank(x, r, i, m)
    d = d + dims if d < 0 else d
    if d < 0 or d >= dims:
        return -1
    at = _at(x, MEMBERS_ARG, _at(x, MEMBERS_ROW, r) + i) + m
    return _at(x, MEMBERS, _at(x, MEMBERS_DIM, at) + d)


@njit
def member_numel(x: Inputs, r: int, i: int, m: int) -> float:
    """Return the number of elements of tensor m of the list that is input i; NaN if none."""
    dims = member_rank(x, r, i, m)
    if dims < 0:
        return math.nan
    product = 1.0
    for d in range(dims):
        product *= member_dim(x, r, i, m, d)
    return product


@njit
def members_numel(x: Inputs, r: int, i: int) -> float:
    """Return the elements of all tensors of the list that is input i; 0 if it is no list."""
    total = 0.0
    for m in range(members(x, r, i)):
        total += member_numel(x, r, i, m)
    return total


@njit
def values(x: Inputs, r: int) -> int:
    """Return how many inputs of row r have a concrete value recorded, if only an empty one."""
    return _length(x, VALUES_ROW, r)


@njit
def kind(x: Inputs, r: int, i: int) -> int:
    """Return what the concrete value of input i is; NO_VALUE if none was recorded."""
    if i < 0 or i >= _length(x, VALUES_ROW, r):
        return NO_VALUE
    return _at(x, KIND, _at(x, VALUES_ROW, r) + i)


@njit
def number(x: Inputs, r: int, i: int) -> float:
    """Return the concrete value of input i as a number (True is 1); NaN if it is none."""
    if kind(x, r, i) == NO_VALUE:
        return math.nan
    return x.reals[_at(x, VALUES_ROW, r) + i]


@njit
def items(x: Inputs, r: int, i: int) -> int:
    """Return the length of the list that is the concrete value of input i; -1 if it is none."""
    if kind(x, r, i) != A_LIST:
        return -1
    at = _at(x, VALUES_ROW, r) + i
    return _at(x, ITEMS_ARG, at + 1) - _at(x, ITEMS_ARG, at)


@njit
def item(x: Inputs, r: int, i: int, k: int) -> float:
    """Return number k of the list that is the concrete value of input i, from the end if negative.

    NaN if there is none.
    """
    length = items(x, r, i)
    k = k + length if k < 0 else k
    if k < 0 or k >= length:
        return math.nan
    return x.reals[x.integers[ITEMS] + _at(x, ITEMS_ARG, _at(x, VALUES_ROW, r) + i) + k]
