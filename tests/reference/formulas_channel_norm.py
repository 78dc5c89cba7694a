"""What batch, instance and group norms do, in plain Python."""

from __future__ import annotations

from reference.formulas_norm import Ledger, Tensor, kept


def batch_norm(x, w, b, running_mean, running_var, training: bool, per_sample: bool):
    n, channels = x.elements, x.shape[1]
    flops = 2 * n + 6 * channels
    ledger = Ledger()
    ledger.read(x, w, b, running_mean, running_var)
    ledger.write(x.shape, x.type)
    if training:
        flops += 3 * n
        for running in (running_mean, running_var):
            if running is not None:
                ledger.write(running.shape, running.type)
            ledger.write((x.shape[0] if per_sample else 1, channels), kept(x.type))
    return flops, ledger.bytes


def batch_norm_backward(dy, x, w, running, saved, training: bool, mask):
    """`running` and `saved` are the two statistics of the one and the other kind."""
    n = x.elements
    flops = 4 * n
    if training and mask[0]:
        flops += 5 * n
    if not training:
        flops += 3 * x.shape[1]
    if not mask[0]:
        flops += 2 * n
    ledger = Ledger()
    ledger.read(dy)
    if mask[1] or (mask[0] and training):
        ledger.read(x)
    if training and (mask[0] or mask[1]):
        ledger.read(*saved)
    if not training and (mask[0] or mask[1]):
        ledger.read(*running)
    if mask[0]:
        ledger.read(w)
        ledger.write(x.shape, x.type)
    for wanted in mask[1:]:
        if wanted and w is not None:
            ledger.write(w.shape, w.type)
    return flops, ledger.bytes


def group_kept(x: Tensor, w: Tensor | None) -> str:
    return x.type if w is None or w.type == x.type else "float"


def group_norm(x, w, b, groups: int):
    n, samples, channels = x.elements, x.shape[0], x.shape[1]
    ledger = Ledger()
    ledger.read(x, w, b)
    ledger.write(x.shape, x.type)
    for _ in ("mean", "rstd"):
        ledger.write((samples, groups), group_kept(x, w))
    return 5 * n + 6 * channels, ledger.bytes


def group_norm_backward(dy, x, mean, rstd, w, mask):
    n, channels = x.elements, x.shape[1]
    ledger = Ledger()
    ledger.read(dy)
    if mask[0] or mask[1]:
        ledger.read(x, mean, rstd)
    if mask[0]:
        ledger.read(w)
        ledger.write(x.shape, x.type)
    for wanted in mask[1:]:
        if wanted and w is not None:
            ledger.write((channels,), w.type)
    return 9 * n if mask[0] else 6 * n, ledger.bytes
