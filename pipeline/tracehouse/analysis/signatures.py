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


@dataclass(frozen=True, slots=True)
class _Text:
    """One of the four args: its JSON text, and its elements (None if it holds no list)."""

    json: str
    elements: list[Any] | None


_ABSENT = _Text("", None)


def _read_texts(column: Words, convert: Callable[[Any], Any]) -> dict[int, _Text]:
    """Parse the distinct texts of a column, by code; what is no JSON is quoted in `json`."""
    used, _ = column.used()
    texts = {}
    for code in used.tolist():
        text = column.values[code]
        read = _read_short if len(text) <= _SHORT else _read_text
        texts[code] = read(text, convert)
    return texts


def _read_text(text: str, convert: Callable[[Any], Any]) -> _Text:
    parsed = _parsed(text)
    quoted = json.dumps(text) if parsed is _NOT_JSON else text
    return _Text(quoted, _elements(parsed, convert))


# The traces of an archive have their inputs in common. What is kept is never changed.
_SHORT = 512
_read_short = lru_cache(maxsize=4096)(_read_text)


def _without_lists(dims: list[Shape] | None, types: list[str | None] | None) -> list[Shape] | None:
    """Return the shapes, None for a list of tensors: a long one is recorded as `[]` (F61)."""
    if dims is None or types is None or _LIST_TYPES.isdisjoint(types):
        return dims
    lists = {i for i, word in enumerate(types) if word in _LIST_TYPES}
    return [None if i in lists else shape for i, shape in enumerate(dims)]


def _shapes_of_members(text: _Text) -> list[list[Shape] | None] | None:
    """Return the members of each input that is a tensor list, None if no input is one."""
    if "[[[" not in text.json and "],[[" not in text.json:
        return None
    found = _elements(_parsed(text.json), _members)
    return found if found is not None and any(found) else None


def _declared(row: Sequence[_Text]) -> int | None:
    """Return the number of declared inputs: that of their types, else of their shapes (F59)."""
    dims, types = row[0].elements, row[1].elements
    known = dims if types is None else types
    return None if known is None else len(known)


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
    codes: dict[int, list[int]] = {}
    for number in np.flatnonzero(known).tolist():
        row = rows[number].tolist()
        ids[number] = key = signature_id(
            [c.values[code] if code >= 0 else None for c, code in zip(columns, row, strict=True)]
        )
        codes[key] = row
    return Integers(ids[numbers], known[numbers]), _table(columns, codes, trace_id)


def _table(columns: Sequence[Words], codes: dict[int, list[int]], trace_id: str) -> pa.Table:
    """Make the table of the signatures `codes`: id to the code of each of the four texts."""
    converters = (_integers, _word, _integers, _value)
    texts = [_read_texts(c, convert) for c, convert in zip(columns, converters, strict=True)]
    rows = [
        [known.get(code, _ABSENT) for known, code in zip(texts, row, strict=True)]
        for row in codes.values()
    ]
    values = [row[3].elements for row in rows]
    declared = [_declared(row) for row in rows]
    data = {
        "trace_id": constant(trace_id, len(rows)).arrow(),
        "signature_id": list(codes),
        "input_dims": [_without_lists(row[0].elements, row[1].elements) for row in rows],
        "member_dims": [_shapes_of_members(row[0]) for row in rows],
        "input_types": [row[1].elements for row in rows],
        "input_strides": [_without_lists(row[2].elements, row[1].elements) for row in rows],
        "concrete_inputs": [v and v[:n] for v, n in zip(values, declared, strict=True)],
        "extra_inputs": [
            v[n:] if v and n is not None and len(v) > n else None
            for v, n in zip(values, declared, strict=True)
        ],
        "raw": [_raw(row) for row in rows],
    }
    return pa.table(data, schema=tables.SIGNATURES.schema)


def _raw(row: Sequence[_Text]) -> str:
    """Join the texts to one JSON object, named as in the trace."""
    named = zip(_ARG_NAMES, row, strict=True)
    return "{" + ",".join(f'"{name}":{text.json}' for name, text in named if text.json) + "}"
