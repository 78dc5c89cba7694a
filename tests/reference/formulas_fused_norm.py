"""What the root-mean-square norms of inference engines do, in plain Python."""

from __future__ import annotations

import itertools

from reference.formulas_norm import Ledger, Tensor


def _norm_flops(x: Tensor) -> int:
    flops = 0
    for _ in itertools.product(*(range(size) for size in x.shape[:-1])):
        flops += 2
        for _ in range(x.shape[-1]):
            flops += 4
    return flops


def blocks(row: int, size: int) -> int:
    return len(range(0, row, size))


def fused_norm(
    x: Tensor,
    w: Tensor,
    residual: Tensor | None = None,
    second: tuple[Tensor, Tensor] | None = None,
    quantised: str = "",
    group: int = 0,
    pad: int = 0,
    scale: Tensor | None = None,
):
    """quantised: "", "given", "found" (one scale for `group` values of a row) or "mxfp4"."""
    flops = _norm_flops(x)
    ledger = Ledger()
    ledger.read(x, w)
    rows, row = x.shape[:-1], x.shape[-1]
    if residual is not None:
        flops += x.elements
        ledger.read(residual)
        ledger.write(x.shape, residual.type)
    if second is not None:
        flops += _norm_flops(second[0])
        ledger.read(*second)
        ledger.write(second[0].shape, x.type)
    if quantised == "given":
        flops += x.elements
        ledger.read(scale)
        ledger.write(x.shape, "c10::Float8_e4m3fn")
    elif quantised == "found":
        flops += 2 * x.elements
        ledger.write(x.shape, "c10::Float8_e4m3fn")
        ledger.write((*rows, blocks(row, group)), "float")
    elif quantised == "mxfp4":
        flops += 2 * x.elements
        ledger.write((*rows, row // 2), "unsigned char")
        ledger.write((*rows, blocks(row, 32)), "unsigned char")
    else:
        ledger.write((*rows, blocks(row, pad) * pad if pad else row), x.type)
    return flops, ledger.bytes
