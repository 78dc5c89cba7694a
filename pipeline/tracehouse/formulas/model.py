"""What a family of formulas is: a numba routine, the inputs it reads, the ops it is for.

A routine `kernel(x, calls, work)` fills one row of `work` a call. It never raises: what cannot be
known stays NaN, with the reason in `work.why`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracehouse.formulas.inputs import Inputs

ABSENT = -1  # a slot that an op has no input for
NO_PARAMETER = -(2**63)  # a parameter that a call has no value for


class Why(IntEnum):
    """Why FLOPs or bytes are not known; the texts are WHY."""

    KNOWN = 0
    NO_INPUTS = 1
    NO_SHAPE = 2
    MISFIT = 3
    NO_TYPE = 4
    NO_VALUE = 5
    NO_FORMULA = 6
    NO_LENGTHS = 7
    NOT_FOUND = 8
    TOO_LARGE = 9
    NO_HEADS = 10


WHY = {
    Why.KNOWN: None,
    Why.NO_INPUTS: "its inputs were not recorded: record_shapes was off, or the op states none",
    Why.NO_SHAPE: "the shape of an input it depends on was not recorded",
    Why.MISFIT: "the shapes do not fit the op's declaration",
    Why.NO_TYPE: "the type of an input was not recorded, or is not known",
    Why.NO_VALUE: "a value that the formula depends on was not recorded",
    Why.NO_FORMULA: "no formula for this form of the op",
    Why.NO_LENGTHS: "the lengths of the sequences are not in its inputs",
    Why.NOT_FOUND: "its forward call was not found",
    Why.TOO_LARGE: "the product of the shapes is out of range",
    Why.NO_HEADS: "heads and widths are not in its inputs: pass --model-config",
}


class Calls(NamedTuple):
    """n calls of one model.

    row (n,): the row of Inputs. slot (n, slots): for each slot of the model the position of the
    input, ABSENT if the op has none, or a constant. element (n,): bytes of an element as the
    kernel's name tells them, NaN if it does not.
    """

    row: NDArray[np.int64]
    slot: NDArray[np.int64]
    element: NDArray[np.float64]


class Work(NamedTuple):
    """What n calls do.

    flops (n,): floating-point operations, a fused multiply-add is 2; NaN if unknown. bytes (n,):
    compulsory memory traffic, each distinct input read once and each output written once; NaN if
    unknown. dtype (n,): type code whose precision the peak is taken of; NONE or UNKNOWN if none.
    why (n,): a Why, where flops or bytes are NaN. parameters (n, labels): what the formula took
    from the inputs, NO_PARAMETER where a call has none.
    """

    flops: NDArray[np.float64]
    bytes: NDArray[np.float64]
    dtype: NDArray[np.int64]
    why: NDArray[np.int64]
    parameters: NDArray[np.int64]


Kernel = Callable[[Inputs, Calls, Work], None]
Slots = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Model:
    """A family of formulas.

    unit: `matrix` or `vector`, whose peak bounds it; "" if it computes nothing. slots: names of
    what the kernel reads, with the value for ops that do not set it (mostly ABSENT). labels: names
    of the parameters that it reports. families: for each family of data/op_categories.csv the slots
    of its ops, None if only the ops named in `ops` have a formula. ops: the slots of single ops,
    instead of their family's.
    """

    name: str
    kernel: Kernel
    unit: str
    slots: Slots
    labels: tuple[str, ...]
    families: Mapping[str, Slots | None]
    ops: Mapping[str, Slots] = field(default_factory=dict)

    def slots_of(self, op: str, family: str) -> list[int] | None:
        """Return the value of every slot for an op of one of its families, None if not known."""
        own = self.ops.get(op, self.families[family])
        return None if own is None else self._filled(own)

    def slots_of_forward(self, forward: Model, op: str, family: str) -> list[int] | None:
        """Return the value of every slot where the inputs are those of the forward call.

        The models of an op and of its backward name what they read alike.
        """
        own = forward.slots_of(op, family)
        if own is None:
            return None
        named = dict(zip(forward.slots, own, strict=True))
        return self._filled({slot: named[slot] for slot in self.slots if slot in named})

    def _filled(self, own: Slots) -> list[int]:
        return [own.get(slot, default) for slot, default in self.slots.items()]
