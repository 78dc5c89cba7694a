"""What normalisations by rows do, in plain Python: a ledger of what is read and written."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

SIZE = {"c10::BFloat16": 2, "c10::Half": 2, "float": 4, "double": 8, "c10::Float8_e4m3fn": 1}
SIZE |= {"unsigned char": 1, "signed char": 1, "int": 4, "long int": 8, "bool": 1}


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, ...]
    type: str
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def distinct(self) -> int:
        """Elements at different places in memory."""
        if self.strides is None:
            return self.elements
        places = itertools.product(*(range(size) for size in self.shape))
        steps = [sum(p * s for p, s in zip(place, self.strides, strict=True)) for place in places]
        return len(set(steps))


class Ledger:
    def __init__(self) -> None:
        self.bytes = 0

    def read(self, *tensors: Tensor | None) -> None:
        for tensor in tensors:
            if tensor is not None:
                self.bytes += tensor.distinct * SIZE[tensor.type]

    def write(self, shape: tuple[int, ...], type_: str) -> None:
        for _ in itertools.product(*(range(size) for size in shape)):
            self.bytes += SIZE[type_]


def kept(type_: str) -> str:
    return "double" if type_ == "double" else "float"


def layer_norm(x: Tensor, w: Tensor | None, b: Tensor | None, normalised: int):
    """FLOPs and bytes; `normalised` trailing dimensions make a row."""
    rows, row = x.shape[:-normalised], x.shape[-normalised:]
    flops = 0
    for _ in range(math.prod(rows)):
        for _ in range(math.prod(row)):
            flops += 3  # mean, deviation
            flops += 2  # subtract, multiply
    flops += 6 * math.prod(row)
    ledger = Ledger()
    ledger.read(x, w, b)
    ledger.write(x.shape, x.type)
    ledger.write(rows, kept(x.type))
    ledger.write(rows, kept(x.type))
    return flops, ledger.bytes


def rms_norm(x: Tensor, w: Tensor | None, normalised: int):
    rows, row = x.shape[:-normalised], x.shape[-normalised:]
    flops = 0
    for _ in range(math.prod(rows)):
        flops += 2 * math.prod(row) + 2  # squares and their sum, root and reciprocal
        flops += math.prod(row) * (1 if w is None else 2)
    ledger = Ledger()
    ledger.read(x, w)
    ledger.write(x.shape, x.type)
    ledger.write(rows, kept(x.type))
    return flops, ledger.bytes


def layer_norm_backward(dy, x, mean, rstd, w, b, mask):
    n = x.elements
    flops = 4 * n + (5 * n if mask[0] else 2 * n)
    ledger = Ledger()
    ledger.read(dy)
    if mask[0] or mask[1]:
        ledger.read(x, mean, rstd)
    if mask[0]:
        ledger.read(w)
        ledger.write(x.shape, x.type)
    for wanted, parameter in ((mask[1], w), (mask[2], b)):
        if wanted and parameter is not None:
            ledger.write(parameter.shape, parameter.type)
    return flops, ledger.bytes


def rms_norm_backward(dy, x, rstd, w, mask):
    n = x.elements
    flops = n
    if w is not None:
        flops += n + (2 * n if mask[1] else 0)
    if mask[0]:
        flops += 6 * n
    ledger = Ledger()
    ledger.read(dy)
    if mask[0] or mask[1]:
        ledger.read(x, rstd)
    if mask[0]:
        ledger.read(w)
        ledger.write(x.shape, x.type)
    if mask[1] and w is not None:
        ledger.write(w.shape, w.type)
    return flops, ledger.bytes


def ln_modulate(x, scale, shift):
    ledger = Ledger()
    ledger.read(x, scale, shift)
    ledger.write(x.shape, x.type)
    ledger.write(x.shape[:-1], "float")
    ledger.write(x.shape[:-1], "float")
    return 12 * x.elements, ledger.bytes


def ln_modulate_backward(dy, x, mean, rstd, scale):
    ledger = Ledger()
    ledger.read(dy, x, mean, rstd, scale)
    ledger.write(x.shape, x.type)
    ledger.write(scale.shape, scale.type)
    ledger.write(scale.shape, scale.type)
    return 15 * x.elements, ledger.bytes
