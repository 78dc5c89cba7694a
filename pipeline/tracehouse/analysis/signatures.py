"""The inputs of op calls: parsed once per distinct combination of the four args."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from tracehouse.analysis.columns import (
    Integers,
    Ints,
    Mask,
    Words,
    combination,
    constant,
    pick,
    places,
    read_integers,
)
from tracehouse.schema import tables

_ARG_NAMES = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
_LIST_TYPES = frozenset({"TensorList", "GenericList"})
_INT64 = range(-(2**63), 2**63)

_NOT_JSON = object()
Shape = list[int] | None
Texts = tuple[str | None, str | None, str | None, str | None]
"""The four args of a call as JSON texts."""


def signature_id(texts: Sequence[str | None]) -> int:
    """Hash the four texts to a signed 64-bit integer; an absent text differs from an empty one."""
    digest = xxhash.xxh3_64()
    for text in texts:
        if text is None:
            digest.update(b"\0")
        else:
            data = text.encode("utf-8", "surrogatepass")
            digest.update(b"\1" + len(data).to_bytes(8, "little") + data)
    return int.from_bytes(digest.digest(), "big", signed=True)


def _parsed(text: str) -> Any:
    """Parse JSON text; _NOT_JSON if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _elements(parsed: Any, convert: Callable[[Any], Any]) -> list[Any] | None:
    """Convert each element of a list; None if it is no list."""
    return [convert(item) for item in parsed] if isinstance(parsed, list) else None


def _integers(item: Any) -> Shape:
    """Return a list of integers; None for anything else, such as the shapes of a tensor list."""
    if isinstance(item, list) and all(type(n) is int and n in _INT64 for n in item):
        return item
    return None


def _members(item: Any) -> list[Shape] | None:
    """Return the shapes of a tensor list; None for anything else, and for a list of none (F61)."""
    if isinstance(item, list) and item and all(isinstance(member, list) for member in item):
        return [_integers(member) for member in item]
    return None


def _word(item: Any) -> str | None:
    """Return a text, half of a surrogate pair replaced: Arrow stores UTF-8."""
    return item.encode("utf-8", "replace").decode() if isinstance(item, str) else None


def _value(item: Any) -> str | None:
    """Return a value as text."""
    if item is None or isinstance(item, str):
        return _word(item)
    return json.dumps(item)


def _without_lists(dims: list[Shape] | None, types: list[str | None] | None) -> list[Shape] | None:
    """Return the shapes, None for a list of tensors: a long one is recorded as `[]` (F61)."""
    if dims is None or types is None or _LIST_TYPES.isdisjoint(types):
        return dims
    lists = {i for i, word in enumerate(types) if word in _LIST_TYPES}
    return [None if i in lists else shape for i, shape in enumerate(dims)]


def _shapes_of_members(text: str, parsed: Any) -> list[list[Shape] | None] | None:
    """Return the members of each input that is a tensor list, None if no input is one."""
    if "[[[" not in text and "],[[" not in text:
        return None
    found = _elements(parsed, _members)
    return found if found is not None and any(found) else None


@dataclass(frozen=True, slots=True)
class _Inputs:
    """One row of the table `signatures`, but for its trace."""

    signature_id: int
    input_dims: list[Shape] | None
    member_dims: list[list[Shape] | None] | None
    input_types: list[str | None] | None
    input_strides: list[Shape] | None
    concrete_inputs: list[str | None] | None
    extra_inputs: list[str | None] | None
    raw: str


def _inputs(texts: Texts) -> _Inputs:
    """Read the four texts."""
    parsed = [None if text is None else _parsed(text) for text in texts]
    dims = _elements(parsed[0], _integers)
    types = _elements(parsed[1], _word)
    values = _elements(parsed[3], _value)
    # How many inputs are declared: as many as have a type, else as have a shape (F59).
    known = dims if types is None else types
    declared = None if known is None else len(known)
    quoted = [
        f'"{name}":{json.dumps(text) if value is _NOT_JSON else text}'
        for name, text, value in zip(_ARG_NAMES, texts, parsed, strict=True)
        if text is not None
    ]
    return _Inputs(
        signature_id=signature_id(texts),
        input_dims=_without_lists(dims, types),
        member_dims=_shapes_of_members(texts[0] or "", parsed[0]),
        input_types=types,
        input_strides=_without_lists(_elements(parsed[2], _integers), types),
        concrete_inputs=values and values[:declared],
        extra_inputs=values[declared:]
        if values and declared is not None and len(values) > declared
        else None,
        raw="{" + ",".join(quoted) + "}",
    )


# The traces of an archive have their inputs in common. What is kept is never changed.
_SHORT = 512
_known_inputs = lru_cache(maxsize=4096)(_inputs)


def with_extra_inputs(ids: Integers, table: pa.Table) -> Mask:
    """Tell which op calls have more values than declared inputs, by their signatures."""
    extra = table.filter(table["extra_inputs"].is_valid())["signature_id"].to_numpy()
    return np.isin(ids.values, extra) & ids.known


def rows_of_ids(signatures: pa.Table, ids: Integers) -> Ints:
    """Return the row of each signature id, -1 for NULL; equal ids mean equal inputs."""
    known = read_integers(signatures, "signature_id").values
    order = np.argsort(known, kind="stable")
    found = pick(order, places(known[order], ids.values))
    return np.where(ids.known, found, -1)


def signatures(columns: Sequence[Words], trace_id: str) -> tuple[Integers, pa.Table]:
    """Find the distinct inputs of op calls.

    `columns` are the four args of SIGNATURE_TEXTS, of the ops (n,). Returns the signature id of
    each op (NULL if none of the four was recorded) and the table `signatures`, in order of first
    use. Nothing raises: what cannot be parsed is NULL, and stands in `raw`.
    """
    numbers, first = combination(columns)
    rows = np.stack([column.codes[first] for column in columns], axis=1)
    known: Mask = np.any(rows >= 0, axis=1)
    ids = np.zeros(len(first), dtype=np.int64)
    found: dict[int, _Inputs] = {}
    words = [[*column.values, None] for column in columns]  # the code -1 finds the last
    for number in np.flatnonzero(known).tolist():
        a, b, c, d = rows[number].tolist()
        texts = words[0][a], words[1][b], words[2][c], words[3][d]
        is_short = sum(len(text) for text in texts if text is not None) <= _SHORT
        inputs = _known_inputs(texts) if is_short else _inputs(texts)
        ids[number] = inputs.signature_id
        found[inputs.signature_id] = inputs
    return Integers(ids[numbers], known[numbers]), _table(list(found.values()), trace_id)


def _table(rows: Sequence[_Inputs], trace_id: str) -> pa.Table:
    """Make the table `signatures`."""
    data = {
        name: constant(trace_id, len(rows)).arrow()
        if name == "trace_id"
        else [getattr(row, name) for row in rows]
        for name in tables.SIGNATURES.schema.names
    }
    return pa.table(data, schema=tables.SIGNATURES.schema)
