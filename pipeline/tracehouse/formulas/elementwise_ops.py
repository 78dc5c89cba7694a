"""The pointwise ops: where their operands are, what an element costs, the type of the result.

An element costs 1 FLOP, a transcendental function too, unless perf_models A7 says more. Positions
are those of the ATen declarations, defaults included. Ops that end in an underscore work in place.

No formula: `real`, `imag`, `positive` (views, they start nothing); `isclose`, `isfinite`, `isinf`,
`ldexp` (several kernels, of ops that have formulas); `masked_scatter` (how much of its source is
read depends on the mask's values).
"""

from __future__ import annotations

from tracehouse.formulas.model import ABSENT, Slots
from tracehouse.formulas.pointwise import (
    BOOLS_ARE_INTEGERS,
    FLOAT,
    IS_BOOL,
    IS_COMPLEX,
    OF_FIRST,
    REAL,
)

_COMPLEX_PRODUCT = 6  # four products, two sums


# Ops without a form in place.
_OUT_OF_PLACE = frozenset(
    (
        "_conj_physical angle softplus isnan view_as_complex_copy complex polar _prelu_kernel "
        "prelu rsub __and__ __lshift__ __or__ __rshift__ __xor__ fmax fmin maximum minimum where"
    ).split()
)


def _ops(names: str, **slots: int) -> dict[str, Slots]:
    """Return the slots of ops and of their forms in place."""
    in_place: Slots = {**slots, "out": ABSENT, "in_place": 1}
    found: dict[str, Slots] = {f"aten::{name}": slots for name in names.split()}
    found.update((f"aten::{n}_", in_place) for n in names.split() if n not in _OUT_OF_PLACE)
    return found


def _unary(names: str, **slots: int) -> dict[str, Slots]:
    return _ops(names, **{"x": 0, "out": 1, **slots})


def _binary(names: str, **slots: int) -> dict[str, Slots]:
    return _ops(names, **{"x": 0, "y": 1, "out": 2, **slots})


def _ternary(names: str, **slots: int) -> dict[str, Slots]:
    return _ops(names, **{"x": 0, "y": 1, "z": 2, "out": 4, **slots})


_UNARY: dict[str, Slots] = {
    **_unary(
        "_conj_physical bitwise_not ceil conj_physical floor frac nan_to_num neg relu round sgn "
        "sign trunc"
    ),
    **_unary("square", result=BOOLS_ARE_INTEGERS),
    **_unary("abs", result=REAL),
    **_unary("angle", result=FLOAT + REAL),
    **_unary(
        "acos asin atan cos cosh digamma erf erfc erfinv exp exp2 expm1 i0 lgamma log log10 log1p "
        "log2 logit reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh",
        result=FLOAT,
    ),
    **_unary(
        "celu elu hardsigmoid hardswish leaky_relu mish selu silu softplus threshold",
    ),
    **_unary("gelu", flops=8),
    **_unary("hardtanh", flops=2),
    **_unary("isnan logical_not", result=IS_BOOL),
    **_unary("view_as_complex_copy", flops=0),
    **_ternary("clamp", flops=2, out=3, optional=1),
    "aten::clamp.Tensor": {"x": 0, "y": 1, "z": 2, "out": 3, "flops": 2, "optional": 1},
    **_binary("clamp_max clamp_min pow"),
    **_binary("complex", flops=0, result=IS_COMPLEX),
    **_binary("polar", flops=4, result=IS_COMPLEX),  # a sine, a cosine, two products
    **_ops("_prelu_kernel prelu", x=0, extra=1, result=OF_FIRST),
}

_BINARY: dict[str, Slots] = {
    **_binary("add rsub sub", alpha=2, out=3),
    **_binary("mul", complex_flops=_COMPLEX_PRODUCT),
    **_binary("div", complex_flops=_COMPLEX_PRODUCT, mode=2, result=FLOAT),
    **_binary("true_divide", complex_flops=_COMPLEX_PRODUCT, result=FLOAT),
    **_binary("atan2 copysign xlogy", result=FLOAT),
    **_binary(
        "__and__ __lshift__ __or__ __rshift__ __xor__ bitwise_and bitwise_left_shift bitwise_or "
        "bitwise_right_shift bitwise_xor floor_divide fmax fmin fmod gcd hypot lcm maximum minimum "
        "nextafter remainder"
    ),
    **_binary("eq ge gt le logical_and logical_or logical_xor lt ne", result=IS_BOOL),
    **_ops("masked_fill", x=0, mask=1, y=2, out=3, result=OF_FIRST),
    "LigerSiLUMulFunction": {"x": 0, "y": 1},
    "LigerGELUMulFunction": {"x": 0, "y": 1, "flops": 9},
}

_TERNARY: dict[str, Slots] = {
    **_ternary("addcdiv addcmul", flops=3),
    **_ternary("lerp", flops=3, out=3),
    **_ops("where", mask=0, x=1, y=2, out=3),
    **_binary("heaviside"),
}

OPS: dict[str, Slots] = {**_UNARY, **_BINARY, **_TERNARY}
