"""FLOPs and bytes of op calls: each distinct op, inputs and element size is evaluated once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehouse.analysis.columns import Codes, Ints, Mask, numbered
from tracehouse.analysis.op_categories import OpCategories, plain_name
from tracehouse.formulas.dtypes import DTYPES, FIRST_TENSOR_TYPE
from tracehouse.formulas.evaluate import evaluate
from tracehouse.formulas.inputs import Inputs, read_inputs, unusable_rows
from tracehouse.formulas.model import NO_PARAMETER, WHY, Model, Why
from tracehouse.formulas.registry import WITHOUT_FORMULA, model_of
from tracehouse.formulas.user import OpCall, OpWork, UserModel, evaluated
from tracehouse.spill import Spill

Reals = NDArray[np.float64]
_BACKWARD = "_bwd"  # in the families of backward ops: without it, their forward ops' family
_FURTHER_FORWARD = {
    "conv_bwd_leaf": "conv",
    "mamba_ssd_bwd": "causal_conv1d",
    "binary_bwd": "unary",
}
_SIZES = 64  # more than twice the bytes of any element: they come in halves


@dataclass(frozen=True, slots=True)
class Called:
    """Op calls to evaluate.

    name (n,): code into `names`. row (n,): row of the table `signatures`, -1 for none. element
    (n,): bytes of an element as the kernels' names tell them, NaN if they don't.
    """

    name: Codes
    names: Sequence[str]
    row: Ints
    element: Reals

    def take(self, rows: Ints) -> Called:
        """Return some of the calls."""
        return Called(self.name[rows], self.names, self.row[rows], self.element[rows])


@dataclass(frozen=True, slots=True)
class Spec:
    """Words about a result.

    unit: matrix, vector or "". precision: key of the peaks or "". dtype: name of the type. params:
    JSON text. why: the reason why something is unknown.
    """

    unit: str
    precision: str
    dtype: str | None
    params: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Results:
    """The work of n calls: flops, bytes (n,), NaN if unknown; spec (n,): place in `specs`."""

    flops: Reals
    bytes: Reals
    spec: Ints
    specs: list[Spec]

    def kept(self, spill: Spill) -> Results:
        """Return the results put away."""
        flops, moved = spill.array(self.flops), spill.array(self.bytes)
        return Results(flops, moved, spill.array(self.spec), self.specs)

    def take(self, rows: Ints) -> Results:
        """Return the results of some calls."""
        return Results(self.flops[rows], self.bytes[rows], self.spec[rows], self.specs)

    def replaced(self, rows: Ints, other: Results) -> Results:
        """Return the results with those of `rows` taken from `other`, in its order."""
        flops, moved, spec = self.flops.copy(), self.bytes.copy(), self.spec.copy()
        flops[rows], moved[rows] = other.flops, other.bytes
        spec[rows] = other.spec + len(self.specs)
        return Results(flops, moved, spec, [*self.specs, *other.specs])

    def without(self, rows: Ints, why: str) -> Results:
        """Return the results with the work of `rows` unknown, and why."""
        unknown = np.full(len(rows), np.nan)
        spec = Spec("", "", None, None, why)
        return self.replaced(rows, Results(unknown, unknown, np.zeros(len(rows), np.int64), [spec]))


class Formulas:
    """The formulas of the ops of some traces, with the inputs they read."""

    def __init__(
        self,
        signatures: pa.Table,
        rules: OpCategories,
        user_models: Mapping[str, UserModel],
    ) -> None:
        self._signatures = signatures
        self._rules = rules
        self._user = user_models
        self._inputs = read_inputs(signatures)
        self._unusable = np.append(unusable_rows(signatures, self._inputs), False)

    def family(self, name: str) -> str:
        """Return the family of the op `name`."""
        return self._rules.family(name)

    def has_model(self, name: str) -> bool:
        """Whether the op `name` has a formula, if its inputs are recorded."""
        return name in self._user or self.slots_of(name) is not None

    def is_backward(self, name: str) -> bool:
        """Whether the op `name` has a formula that its forward call's inputs may serve."""
        return _BACKWARD in self._rules.family(name) and self.model(name) is not None

    def model(self, name: str) -> Model | None:
        """Return our model of the op `name`, None if there is none."""
        return model_of(self._rules.family(name))

    def slots_of(self, name: str) -> list[int] | None:
        """Return the slots of our model of the op `name`, None if there is none."""
        model = self.model(name)
        return None if model is None else model.slots_of(plain_name(name), self._rules.family(name))

    def results(self, calls: Called) -> Results:
        """Evaluate op calls by the formula of their name."""
        distinct, at = _distinct(calls)
        done = _Collected(len(distinct.name))
        for number, rows in _by_name(distinct):
            name = calls.names[number]
            if name in self._user:
                self._add_user(done, distinct, rows, name)
                continue
            model, slots = self.model(name), self.slots_of(name)
            if model is None or slots is None:
                done.add_none(rows, self._reason(name))
            else:
                done.plan(model, rows, slots)
        done.run(self._inputs, distinct, self._unusable)
        return done.results(at)

    def backward_results(self, calls: Called, backward: Sequence[str]) -> Results:
        """Evaluate backward calls by the inputs of their forward calls.

        calls: the forward calls. backward: the name of each backward call. Element sizes are those
        of the backward calls.
        """
        done = _Collected(len(calls.name))
        places: dict[tuple[str, str], list[int]] = {}
        for i, code in enumerate(calls.name.tolist()):
            places.setdefault((backward[i], calls.names[code]), []).append(i)
        for (name, forward), rows in places.items():
            model, of_forward = self.model(name), self.model(forward)
            slots = None
            family = self._rules.family(forward)
            is_pair = _is_forward(family, self._rules.family(name))
            if model is not None and of_forward is not None and is_pair:
                slots = model.slots_of_forward(of_forward, plain_name(forward), family)
            if model is None or slots is None:
                done.add_none(np.array(rows), WHY[Why.NOT_FOUND])
            else:
                done.plan(model, np.array(rows), slots)
        done.run(self._inputs, calls, self._unusable)
        return done.results(np.arange(len(calls.name)))

    def _reason(self, name: str) -> str | None:
        family = self._rules.family(name)
        if family in WITHOUT_FORMULA:
            return WITHOUT_FORMULA[family]
        return WHY[Why.NO_FORMULA]

    def _add_user(self, done: _Collected, calls: Called, rows: Ints, name: str) -> None:
        for row in rows.tolist():
            if calls.row[row] < 0:
                done.add_none(np.array([row]), WHY[Why.NO_INPUTS])
                continue
            work, why = evaluated(self._user[name], self._call(name, int(calls.row[row])))
            done.add_user(row, work, why)

    def _call(self, name: str, row: int) -> OpCall:
        recorded = self._signatures.slice(row, 1).to_pylist()[0]
        return OpCall(
            name,
            recorded["input_dims"] or [],
            recorded["member_dims"] or [],
            recorded["input_types"] or [],
            recorded["input_strides"] or [],
            recorded["concrete_inputs"] or [],
            self._inputs,
            row,
        )


def _is_forward(family: str, backward: str) -> bool:
    """Whether ops of `family` are the forward ops of those of the family `backward`."""
    return family in (backward.replace(_BACKWARD, ""), _FURTHER_FORWARD.get(backward))


def _distinct(calls: Called) -> tuple[Called, Ints]:
    """Return the distinct calls, and for each call its place among them."""
    size = np.where(np.isnan(calls.element), 0, 2 * calls.element).astype(np.int64)
    rows = int(calls.row.max(initial=-1)) + 2
    key = (calls.name.astype(np.int64) * rows + calls.row + 1) * _SIZES + size
    at, keys = numbered(key)
    first = np.empty(len(keys), dtype=np.int64)
    first[at[::-1]] = np.arange(len(key), dtype=np.int64)[::-1]
    return calls.take(first), at


def _by_name(calls: Called) -> list[tuple[int, Ints]]:
    order = np.argsort(calls.name, kind="stable")
    codes, starts = np.unique(calls.name[order], return_index=True)
    return list(zip(codes.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else []


class _Collected:
    """The results of distinct calls as they come: calls of one model are evaluated together."""

    def __init__(self, size: int) -> None:
        self._flops = np.full(size, np.nan)
        self._bytes = np.full(size, np.nan)
        self._spec = np.zeros(size, dtype=np.int64)
        self._specs: dict[Spec, int] = {}
        self._planned: dict[str, tuple[Model, list[Ints], list[NDArray[np.int64]]]] = {}

    def add_none(self, rows: Ints, why: str | None) -> None:
        self._spec[rows] = self._place(Spec("", "", None, None, why))

    def add_user(self, row: int, work: OpWork, why: str | None) -> None:
        params = json.dumps(dict(work.params)) if work.params else None
        self._flops[row] = np.nan if work.flops is None else round(work.flops)
        self._bytes[row] = np.nan if work.bytes is None else round(work.bytes)
        self._spec[row] = self._place(
            Spec(work.unit, work.precision, work.precision or None, params, why)
        )

    def plan(self, model: Model, rows: Ints, slots: list[int]) -> None:
        _, all_rows, all_slots = self._planned.setdefault(model.name, (model, [], []))
        all_rows.append(rows)
        all_slots.append(np.tile(np.array(slots, dtype=np.int64), (len(rows), 1)))

    def run(self, inputs: Inputs, calls: Called, unusable: Mask) -> None:
        for model, planned, slots in self._planned.values():
            rows, slot = np.concatenate(planned), np.concatenate(slots)
            known: Mask = calls.row[rows] >= 0
            self.add_none(rows[~known], WHY[Why.NO_INPUTS])
            odd = known & unusable[calls.row[rows]]
            self.add_none(rows[odd], WHY[Why.MISFIT])
            rows, slot = rows[known & ~odd], slot[known & ~odd]
            if not len(rows):
                continue
            work = evaluate(model, inputs, calls.row[rows], slot, calls.element[rows])
            self._flops[rows], self._bytes[rows] = np.rint(work.flops), np.rint(work.bytes)
            texts = _parameter_texts(model, work.parameters)
            for row, code, why, text in zip(
                rows.tolist(), work.dtype.tolist(), work.why.tolist(), texts, strict=True
            ):
                dtype = DTYPES[code]
                self._spec[row] = self._place(
                    Spec(model.unit, dtype.precision, _type_name(code), text, WHY[Why(why)])
                )

    def results(self, at: Ints) -> Results:
        specs = list(self._specs)
        return Results(self._flops[at], self._bytes[at], self._spec[at], specs)

    def _place(self, spec: Spec) -> int:
        return self._specs.setdefault(spec, len(self._specs))


def _type_name(code: int) -> str | None:
    """Return the name of a type of elements, None for no type and one that is not known."""
    return DTYPES[code].name if code >= FIRST_TENSOR_TYPE else None


def _parameter_texts(model: Model, parameters: NDArray[np.int64]) -> list[str | None]:
    texts: list[str | None] = []
    for values in parameters.tolist():
        named = {
            label: value
            for label, value in zip(model.labels, values, strict=True)
            if value != NO_PARAMETER
        }
        texts.append(json.dumps(named) if named else None)
    return texts
