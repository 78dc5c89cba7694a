"""What ops that work element by element share: broadcast shapes and the types of results."""

from __future__ import annotations

import math

from tracehouse.compiled import njit
from tracehouse.formulas.dtypes import (
    BOOL_TYPE,
    BYTES,
    CATEGORY,
    CODE,
    COMPLEX,
    FIRST_TENSOR_TYPE,
    FLOATING,
    FP16,
    FP32,
    FP64,
    INT64,
    INTEGRAL,
    NONE,
    SCALAR,
    UINT8,
    UNKNOWN,
    dtype_of_enum,
    promote,
    promote_weakly,
)
from tracehouse.formulas.inputs import (
    A_BOOL,
    A_REAL,
    AN_INT,
    NO_VALUE,
    Inputs,
    count,
    dim,
    dtype,
    is_tensor,
    kind,
    number,
    rank,
    values,
)

# What becomes of the promoted type of the operands; sums of these flags.
AS_PROMOTED = 0
FLOAT = 1  # integers give the default float
REAL = 2  # complex numbers give their real type
IS_COMPLEX = 4  # real numbers give the complex type of their width
IS_BOOL = 8
OF_FIRST = 16  # that of the first operand, whatever the others are
WIDE = 32  # integers give int64, as sums and products do
IS_INT64 = 64
BOOL_OR_UINT8 = 128
BOOLS_ARE_INTEGERS = 256  # bools give int64

COMPLEX32, COMPLEX64, COMPLEX128 = (CODE[f"complex{bits}"] for bits in (32, 64, 128))
_MOST = 2.0**62


@njit
def elements(x: Inputs, r: int, i: int) -> float:
    """Return the number of elements of input i; NaN if not recorded or a dimension is negative."""
    dims = rank(x, r, i)
    if dims < 0:
        return math.nan
    product = 1.0
    for d in range(dims):
        size = dim(x, r, i, d)
        if size < 0:
            return math.nan
        product *= size
    return product


@njit
def broadcast(x: Inputs, r: int, a: int, b: int, c: int, d: int) -> float:
    """Return the number of elements that inputs a to d broadcast to; NaN if they do not.

    ABSENT ones are passed over.
    """
    operands = (a, b, c, d)
    deepest = 0
    for i in operands:
        if i >= 0 and rank(x, r, i) < 0:
            return math.nan
        deepest = max(deepest, rank(x, r, i))
    product = 1.0
    for place in range(1, deepest + 1):
        size = 1
        for i in operands:
            if rank(x, r, i) < place:
                continue
            own = dim(x, r, i, -place)
            if own < 0 or (own != 1 and size not in (1, own)):
                return math.nan
            size = own if size == 1 else size
        product *= size
    return product


@njit
def promoted(x: Inputs, r: int, a: int, b: int, c: int) -> int:
    """Return the type that inputs a to c promote to; UNKNOWN if it cannot be told.

    Tensors with dimensions count before 0-dim tensors, those before Python numbers, which are
    recorded as `Scalar` or as a 0-dim tensor of type double or int64. Source: perf_models A1.
    """
    strong, zero_dim, wrapped, scalar = NONE, NONE, NONE, NONE
    open_scalar = False
    for i in (a, b, c):
        code = dtype(x, r, i)
        if i < 0 or code == NONE:
            continue
        if code == SCALAR:
            value = kind(x, r, i)
            if value == A_BOOL:
                scalar = promote(scalar, BOOL_TYPE)
            elif value == AN_INT:
                scalar = promote(scalar, INT64)
            elif value == A_REAL:
                scalar = promote(scalar, FP64)
            elif value == NO_VALUE:
                open_scalar = True
            else:
                return UNKNOWN
        elif code < FIRST_TENSOR_TYPE:
            return UNKNOWN
        elif rank(x, r, i) > 0:
            strong = _both(strong, code)
        elif code not in (FP64, INT64, COMPLEX128):
            zero_dim = _both(zero_dim, code)
        elif wrapped != NONE and wrapped != code and COMPLEX128 not in (wrapped, code):
            wrapped = FP32  # one of them is the number, more likely the one with a fraction
        else:
            wrapped = promote(wrapped, code)
    result = _weakly(strong, _weakly(zero_dim, _weakly(wrapped, scalar)))
    if open_scalar and CATEGORY[result] < FLOATING:
        return UNKNOWN
    return result


@njit
def _both(a: int, b: int) -> int:
    """Promote two types; a complex result is as wide as the wider of the two asks for."""
    code = promote(a, b)
    if CATEGORY[code] == COMPLEX and CATEGORY[a] >= 0:
        real = a if CATEGORY[b] == COMPLEX else b
        if CATEGORY[real] == FLOATING and 2 * BYTES[real] > BYTES[code]:
            return complex_of(real)
    return code


@njit
def _weakly(strong: int, weak: int) -> int:
    if weak == COMPLEX128 and NONE < strong and CATEGORY[strong] < COMPLEX:
        return complex_of(strong)
    return promote_weakly(strong, weak)


@njit
def complex_of(code: int) -> int:
    """Return the complex type whose parts have the type `code`, complex64 for most."""
    if code == FP16:
        return COMPLEX32
    return COMPLEX128 if code == FP64 else COMPLEX64


@njit
def real_of(code: int) -> int:
    """Return the type of the parts of a complex type, other types as they are."""
    if CATEGORY[code] != COMPLEX:
        return code
    if code == COMPLEX32:
        return FP16
    return FP64 if code == COMPLEX128 else FP32


@njit
def result_type(code: int, flags: int) -> int:
    """Return the type of an op's result, of the promoted type and the flags of this module."""
    if flags & IS_BOOL:
        return BOOL_TYPE
    if flags & IS_INT64:
        return INT64
    if code < FIRST_TENSOR_TYPE:
        return UNKNOWN
    if flags & BOOL_OR_UINT8:
        return UINT8 if code == UINT8 else BOOL_TYPE
    if flags & FLOAT and CATEGORY[code] <= INTEGRAL:
        code = FP32
    if flags & BOOLS_ARE_INTEGERS and code == BOOL_TYPE:
        code = INT64
    if flags & WIDE and CATEGORY[code] <= INTEGRAL:
        code = INT64
    if flags & REAL:
        code = real_of(code)
    if flags & IS_COMPLEX and CATEGORY[code] < COMPLEX:
        code = complex_of(code)
    return code


@njit
def out_type(x: Inputs, r: int, first: int, code: int) -> int:
    """Return the type of the last tensor from input `first` on, an `out=`; `code` if none."""
    if first < 0:
        return code
    for i in range(count(x, r) - 1, first - 1, -1):
        if is_tensor(x, r, i):
            return dtype(x, r, i)
    return code


@njit
def asked_type(x: Inputs, r: int, i: int, code: int) -> int:
    """Return the type that input i, a ScalarType, asks for; `code` if it asks for none.

    UNKNOWN if it is given and its value was not recorded.
    """
    if i < 0 or rank(x, r, i) < 0 or is_tensor(x, r, i):
        return code
    if kind(x, r, i) == AN_INT:
        return dtype_of_enum(number(x, r, i))
    return code if dtype(x, r, i) == NONE else UNKNOWN


@njit
def is_none(x: Inputs, r: int, i: int) -> bool:
    """Tell whether input i, a number or a list, is None; only the values tell a list from None."""
    has_value = 0 <= i < values(x, r)
    return has_value and dtype(x, r, i) == NONE and kind(x, r, i) == NO_VALUE


@njit
def as_parameter(amount: float) -> int:
    """Return a number as an integer to report, cut at 2**62."""
    return int(min(amount, _MOST))
