"""What quantisations do, in plain Python."""

from __future__ import annotations

import math

from reference.formulas_fused_norm import blocks
from reference.formulas_norm import Ledger, Tensor


def per_row(x: Tensor, group: int, flops: float, out: str, scale: str, packed: int = 1):
    """One scale for `group` values of a row; `packed` values to an element of the output."""
    ledger = Ledger()
    ledger.read(x)
    ledger.write((math.prod(x.shape[:-1]), x.shape[-1] // packed), out)
    ledger.write((math.prod(x.shape[:-1]), blocks(x.shape[-1], group)), scale)
    return flops * x.elements, ledger.bytes


def dual(x: Tensor):
    """Rows and columns to MX FP4."""
    rows, columns = x.shape
    ledger = Ledger()
    ledger.read(x)
    for first, second in ((rows, columns), (columns, rows)):
        ledger.write((-(-first * second // 2),), "unsigned char")
        ledger.write((first, blocks(second, 32)), "unsigned char")
    return x.elements, ledger.bytes


def affine(x: Tensor, out: str, scale: Tensor | None, zero: Tensor | None, flops: int, mask: bool):
    ledger = Ledger()
    ledger.read(x, scale, zero)
    ledger.write(x.shape, out)
    if mask:
        ledger.write(x.shape, "bool")
    return flops * x.elements, ledger.bytes
