"""State-space models: causal convolutions, Mamba-2's chunked scan, and their backwards.

Source: perf_models A14.
"""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import BYTES
from tracehouse.formulas.inputs import (
    AN_INT,
    NO_VALUE,
    Inputs,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    numel,
    rank,
    tensor_bytes,
    values,
)
from tracehouse.formulas.model import ABSENT, Calls, Model, Why, Work
from tracehouse.formulas.windows import missing, well_formed

SPLIT, SCAN, CONV = 0, 1, 2  # forms
_SLOTS = {
    "x": ABSENT,
    "w": ABSENT,
    "bias": ABSENT,
    "dt": ABSENT,
    "a": ABSENT,
    "b": ABSENT,
    "c": ABSENT,
    "d": ABSENT,
    "z": ABSENT,
    "dt_bias": ABSENT,
    "chunk": ABSENT,
    "head_size": ABSENT,
    "groups": ABSENT,
    "grad": ABSENT,
    "dx": ABSENT,
    "dw": ABSENT,
    "dbias": ABSENT,
    "form": SPLIT,
}
_X, _W, _BIAS, _DT, _A, _B, _C, _D, _Z, _DT_BIAS = range(10)
_CHUNK, _HEAD_SIZE, _GROUPS, _GRAD, _DX, _DW, _DBIAS, _FORM = range(10, 18)
_INPUTS = 10  # of the slots, these are tensors that are read
_LABELS = ("B", "T", "channels", "taps", "H", "P", "G", "N", "chunk")


@njit
def state_space(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate causal convolutions and chunked scans.

    Slots:  form CONV: x (B, C, L), w (C, k), bias. SCAN: x (B, T, H, P), dt, a, b (B, T, G, N), c,
            d, z, dt_bias, chunk. SPLIT: x (B, T, 2·H·P + 2·G·N + H), w (H·P + 2·G·N, k), bias,
            dt_bias (H), a, d, chunk, head_size P, groups G.
    Units:  FLOPs, bytes.
    Needs:  SPLIT: a width of x that gives a whole N, and the channels of w that follow from it.
    Cost:   O(1) a call.
    Source: perf_models A14. CONV: 2·B·C·L·k, the sum starts at the bias. The scan in chunks of C:
            2·B·T·(G·C·N + H·C·P + 2·H·N·P), SPLIT with the convolution before it. Every input is
            read once, the output (B, T, H·P) written. An output projection is a product of its own.
    """
    for i in range(calls.row.shape[0]):
        r = calls.row[i]
        why, flops, outputs = _forward(x, calls, work, i)
        if why != Why.KNOWN:
            work.why[i] = why
            continue
        work.flops[i] = flops
        work.bytes[i] = _read(x, calls, i) + outputs * BYTES[dtype(x, r, calls.slot[i, _X])]
        _finish(x, calls, work, i)


@njit
def state_space_bwd(x: Inputs, calls: Calls, work: Work) -> None:
    """Evaluate the backwards of causal convolutions and chunked scans.

    Slots:  those of the forward; grad of its output; dx, dw, dbias: the gradients, where they are
            among the inputs.
    Units:  FLOPs, bytes.
    Needs:  as in the forward.
    Cost:   O(1) a call.
    Source: perf_models A14: twice the forward, as each product has two gradients, and the sum of
            the gradient of a bias. Read are the inputs and grad, written a gradient of each input.
    """
    for i in range(calls.row.shape[0]):
        _backward(x, calls, work, i)


@njit
def _backward(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    r, grad = calls.row[i], calls.slot[i, _GRAD]
    why, flops, outputs = _forward(x, calls, work, i)
    if why == Why.KNOWN and grad >= 0:
        why = missing(x, r) if rank(x, r, grad) <= 0 else Why.KNOWN
        if why == Why.KNOWN and not (well_formed(x, r, grad) and numel(x, r, grad) == outputs):
            why = Why.MISFIT
    if why != Why.KNOWN:
        work.why[i] = why
        return
    work.flops[i] = 2.0 * flops + (outputs if _bias_is_added(x, calls, i) else 0.0)
    if grad >= 0:
        moved = tensor_bytes(x, r, grad)
    else:
        moved = outputs * BYTES[dtype(x, r, calls.slot[i, _X])]
    if calls.slot[i, _DX] >= 0:
        for k in range(_DX, _DBIAS + 1):
            moved += tensor_bytes(x, r, calls.slot[i, k])
    else:
        for k in range(_INPUTS):
            if is_tensor(x, r, calls.slot[i, k]):
                moved += numel(x, r, calls.slot[i, k]) * BYTES[dtype(x, r, calls.slot[i, k])]
    work.bytes[i] = moved + _read(x, calls, i)
    _finish(x, calls, work, i)


@njit
def _bias_is_added(x: Inputs, calls: Calls, i: int) -> bool:
    return calls.slot[i, _FORM] == CONV and is_tensor(x, calls.row[i], calls.slot[i, _BIAS])


@njit
def _finish(x: Inputs, calls: Calls, work: Work, i: int) -> None:
    work.dtype[i] = dtype(x, calls.row[i], calls.slot[i, _X])
    if math.isnan(work.bytes[i]):
        work.why[i] = Why.NO_TYPE


@njit
def _read(x: Inputs, calls: Calls, i: int) -> float:
    """Return the bytes of the inputs."""
    read = 0.0
    for k in range(_INPUTS):
        read += tensor_bytes(x, calls.row[i], calls.slot[i, k])
    return read


@njit
def _forward(x: Inputs, calls: Calls, work: Work, i: int) -> tuple[int, float, float]:
    """Return a Why, the FLOPs of the forward and its outputs; fill in the parameters."""
    for k in range(_INPUTS):
        if not well_formed(x, calls.row[i], calls.slot[i, k]):
            return Why.MISFIT, 0.0, 0.0
    form = calls.slot[i, _FORM]
    if form == CONV:
        return _conv(x, calls, work, i)
    if form == SCAN:
        return _scan(x, calls, work, i)
    return _split(x, calls, work, i)


@njit
def _conv(x: Inputs, calls: Calls, work: Work, i: int) -> tuple[int, float, float]:
    r, first, w = calls.row[i], calls.slot[i, _X], calls.slot[i, _W]
    if rank(x, r, first) <= 0 or rank(x, r, w) <= 0:
        return missing(x, r), 0.0, 0.0
    if rank(x, r, first) != 3 or rank(x, r, w) != 2 or dim(x, r, first, 1) != dim(x, r, w, 0):
        return Why.MISFIT, 0.0, 0.0
    n, taps = numel(x, r, first), dim(x, r, w, 1)
    work.parameters[i, 0] = dim(x, r, first, 0)
    work.parameters[i, 1] = dim(x, r, first, 2)
    work.parameters[i, 2] = dim(x, r, w, 0)
    work.parameters[i, 3] = taps
    return Why.KNOWN, 2.0 * n * taps, n


@njit
def _scan(x: Inputs, calls: Calls, work: Work, i: int) -> tuple[int, float, float]:
    r, first, b = calls.row[i], calls.slot[i, _X], calls.slot[i, _B]
    if rank(x, r, first) <= 0 or rank(x, r, b) <= 0:
        return missing(x, r), 0.0, 0.0
    if rank(x, r, first) != 4 or rank(x, r, b) != 4:
        return Why.MISFIT, 0.0, 0.0
    if dim(x, r, first, 0) != dim(x, r, b, 0) or dim(x, r, first, 1) != dim(x, r, b, 1):
        return Why.MISFIT, 0.0, 0.0
    why, chunk = _positive(x, r, calls.slot[i, _CHUNK], math.nan)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    heads, size = float(dim(x, r, first, 2)), float(dim(x, r, first, 3))
    groups, states = float(dim(x, r, b, 2)), float(dim(x, r, b, 3))
    flops = _scan_flops(x, work, i, r, first, heads, size, groups, states, chunk)
    return Why.KNOWN, flops, numel(x, r, first)


@njit
def _split(x: Inputs, calls: Calls, work: Work, i: int) -> tuple[int, float, float]:
    r, first, w = calls.row[i], calls.slot[i, _X], calls.slot[i, _W]
    dt_bias, d = calls.slot[i, _DT_BIAS], calls.slot[i, _D]
    if rank(x, r, first) <= 0 or rank(x, r, w) <= 0 or rank(x, r, dt_bias) <= 0:
        return missing(x, r), 0.0, 0.0
    if rank(x, r, first) != 3 or rank(x, r, w) != 2 or rank(x, r, dt_bias) != 1:
        return Why.MISFIT, 0.0, 0.0
    of_d = float(dim(x, r, d, 1)) if rank(x, r, d) == 2 else math.nan
    why, chunk = _positive(x, r, calls.slot[i, _CHUNK], math.nan)
    if why == Why.KNOWN:
        why, size = _positive(x, r, calls.slot[i, _HEAD_SIZE], of_d)
    if why == Why.KNOWN:
        why, groups = _positive(x, r, calls.slot[i, _GROUPS], 1.0)
    if why != Why.KNOWN:
        return why, 0.0, 0.0
    heads = float(dim(x, r, dt_bias, 0))
    states = (dim(x, r, first, 2) - 2.0 * heads * size - heads) / (2.0 * groups)
    channels, taps = float(dim(x, r, w, 0)), dim(x, r, w, 1)
    if not states > 0.0 or channels != heads * size + 2.0 * groups * states:
        return Why.MISFIT, 0.0, 0.0
    flops = _scan_flops(x, work, i, r, first, heads, size, groups, states, chunk)
    rows = float(dim(x, r, first, 0)) * dim(x, r, first, 1)
    work.parameters[i, 2] = int(channels)
    work.parameters[i, 3] = taps
    return Why.KNOWN, flops + 2.0 * rows * channels * taps, rows * heads * size


@njit
def _scan_flops(
    x: Inputs,
    work: Work,
    i: int,
    r: int,
    first: int,
    heads: float,
    size: float,
    groups: float,
    states: float,
    chunk: float,
) -> float:
    """Return the FLOPs of the products of a chunked scan over x (B, T, …); fill in parameters."""
    work.parameters[i, 0] = dim(x, r, first, 0)
    work.parameters[i, 1] = dim(x, r, first, 1)
    parameters = (heads, size, groups, states, chunk)
    for k in range(5):
        work.parameters[i, 4 + k] = int(parameters[k])
    rows = float(dim(x, r, first, 0)) * dim(x, r, first, 1)
    inside = groups * chunk * states + heads * chunk * size
    return 2.0 * rows * (inside + 2.0 * heads * states * size)


@njit
def _positive(x: Inputs, r: int, i: int, default: float) -> tuple[int, float]:
    """Return a Why and the positive whole number that argument i has, the default for ""."""
    found = default
    if i >= values(x, r):
        return Why.NO_VALUE, found
    what = kind(x, r, i)
    if what == AN_INT:
        found = number(x, r, i)
    elif what != NO_VALUE:
        return Why.MISFIT, found
    if math.isnan(found):
        return Why.NO_VALUE, found
    return (Why.KNOWN if 1.0 <= found < 2.0**53 else Why.MISFIT), found


_CONV = {"x": 0, "w": 1, "bias": 2, "form": CONV}
# dt_limit, a pair, is no argument that the profiler records: what follows it moves up by one.
_MAMBA_SPLIT = {
    "x": 0,
    "w": 1,
    "bias": 2,
    "dt_bias": 3,
    "a": 4,
    "d": 5,
    "chunk": 6,
    "head_size": 15,
    "groups": 16,
    "form": SPLIT,
}
_MAMBA_SCAN = {
    "x": 0,
    "dt": 1,
    "a": 2,
    "b": 3,
    "c": 4,
    "chunk": 5,
    "d": 6,
    "z": 7,
    "dt_bias": 8,
    "form": SCAN,
}

MODELS = (
    Model(
        name="state_space",
        kernel=state_space,
        unit="matrix",
        slots=_SLOTS,
        labels=_LABELS,
        families={"causal_conv1d": _CONV, "mamba_ssd": None},
        ops={
            "MambaSplitConv1dScanCombinedFn": _MAMBA_SPLIT,
            "MambaChunkScanCombinedFn": _MAMBA_SCAN,
        },
    ),
    Model(
        name="state_space_bwd",
        kernel=state_space_bwd,
        unit="matrix",
        slots=_SLOTS,
        labels=_LABELS,
        families={"mamba_ssd_bwd": None},
        ops={
            "DaoAILab::_causal_conv1d_bwd_cpp": {
                **_CONV,
                "grad": 3,
                "dx": 7,
                "dw": 8,
                "dbias": 9,
            },
        },
    ),
)
