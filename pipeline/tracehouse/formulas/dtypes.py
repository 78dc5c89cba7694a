"""Element types as traces spell them: bytes, precision, and what two of them promote to.

A type is a small integer code, an index into the arrays below, so that numba routines can use it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehouse.compiled import njit

# Category of a type in promotion (perf_models A1): the higher one wins.
NO_CATEGORY, BOOL, INTEGRAL, FLOATING, COMPLEX = -1, 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Dtype:
    """An element type.

    bytes: of one stored element, NaN if unknown. values: numbers held by a stored element.
    precision: key of the hardware's peaks, "" if none. enum: its number in ScalarType, -1 if none.
    """

    name: str
    bytes: float
    category: int
    precision: str
    spellings: tuple[str, ...]
    enum: int = -1
    values: int = 1


_F8 = ("c10::Float8_", "Float8_", "float8_")
DTYPES = (
    Dtype(  # no tensor
        "",
        float("nan"),
        NO_CATEGORY,
        "",
        ("", "None", "ScalarList", "Device", "Layout", "Dtype"),
    ),
    Dtype("unknown", float("nan"), NO_CATEGORY, "", ()),
    Dtype("scalar", 0, NO_CATEGORY, "", ("Scalar",)),
    Dtype(
        "list", float("nan"), NO_CATEGORY, "", ("TensorList", "GenericList", "OptionalTensorList")
    ),
    Dtype("bool", 1, BOOL, "", ("bool", "c10::Bool", "Bool"), 11),
    Dtype("uint8", 1, INTEGRAL, "", ("unsigned char", "Byte", "uint8", "uint8_t"), 0),
    Dtype("int8", 1, INTEGRAL, "int8", ("signed char", "char", "Char", "int8", "int8_t"), 1),
    Dtype("int16", 2, INTEGRAL, "", ("short", "short int", "Short", "int16", "int16_t"), 2),
    Dtype("int32", 4, INTEGRAL, "int32", ("int", "Int", "int32", "int32_t"), 3),
    Dtype(
        "int64",
        8,
        INTEGRAL,
        "",
        ("long int", "long", "long long", "long long int", "Long", "int64", "int64_t"),
        4,
    ),
    Dtype(
        "uint16", 2, INTEGRAL, "", ("unsigned short", "short unsigned int", "UInt16", "uint16"), 27
    ),
    Dtype("uint32", 4, INTEGRAL, "", ("unsigned int", "unsigned", "UInt32", "uint32"), 28),
    Dtype(
        "uint64",
        8,
        INTEGRAL,
        "",
        ("unsigned long", "long unsigned int", "unsigned long long", "UInt64", "uint64"),
        29,
    ),
    Dtype("fp16", 2, FLOATING, "fp16", ("c10::Half", "Half", "half", "float16"), 5),
    Dtype("bf16", 2, FLOATING, "bf16", ("c10::BFloat16", "BFloat16", "bfloat16"), 15),
    Dtype("fp32", 4, FLOATING, "fp32", ("float", "c10::Float", "Float", "float32"), 6),
    Dtype("fp64", 8, FLOATING, "fp64", ("double", "c10::Double", "Double", "float64"), 7),
    Dtype("fp8_e5m2", 1, FLOATING, "fp8", tuple(f"{p}e5m2" for p in _F8), 23),
    Dtype("fp8_e4m3fn", 1, FLOATING, "fp8", tuple(f"{p}e4m3fn" for p in _F8), 24),
    Dtype("fp8_e5m2fnuz", 1, FLOATING, "fp8", tuple(f"{p}e5m2fnuz" for p in _F8), 25),
    Dtype("fp8_e4m3fnuz", 1, FLOATING, "fp8", tuple(f"{p}e4m3fnuz" for p in _F8), 26),
    Dtype("fp8_e8m0fnu", 1, FLOATING, "", tuple(f"{p}e8m0fnu" for p in _F8), 44),
    Dtype(
        "fp4_e2m1x2",
        1,
        FLOATING,
        "fp4",
        ("c10::Float4_e2m1fn_x2", "Float4_e2m1fn_x2", "float4_e2m1fn_x2"),
        45,
        2,
    ),
    Dtype("complex32", 4, COMPLEX, "", ("c10::complex<c10::Half>", "ComplexHalf"), 8),
    Dtype("complex64", 8, COMPLEX, "fp32", ("c10::complex<float>", "ComplexFloat"), 9),
    Dtype("complex128", 16, COMPLEX, "fp64", ("c10::complex<double>", "ComplexDouble"), 10),
    Dtype("qint8", 1, INTEGRAL, "int8", ("c10::qint8", "QInt8"), 12),
    Dtype("quint8", 1, INTEGRAL, "int8", ("c10::quint8", "QUInt8"), 13),
    Dtype("qint32", 4, INTEGRAL, "int8", ("c10::qint32", "QInt32"), 14),
)

CODE = {dtype.name: code for code, dtype in enumerate(DTYPES)}
NONE, UNKNOWN, SCALAR, LIST = 0, 1, 2, 3
BOOL_TYPE, INT64, FP16, BF16, FP32, FP64 = (
    CODE[name] for name in ("bool", "int64", "fp16", "bf16", "fp32", "fp64")
)
FP8, FP4, UINT8 = (CODE[n] for n in ("fp8_e4m3fn", "fp4_e2m1x2", "uint8"))
FIRST_TENSOR_TYPE = BOOL_TYPE
_SPELLED = {spelling: code for code, dtype in enumerate(DTYPES) for spelling in dtype.spellings}

# Arrays that numba routines read as constants.
BYTES = np.array([dtype.bytes for dtype in DTYPES], dtype=np.float64)
CATEGORY = np.array([dtype.category for dtype in DTYPES], dtype=np.int64)
VALUES = np.array([dtype.values for dtype in DTYPES], dtype=np.int64)
_LARGEST_ENUM = max(dtype.enum for dtype in DTYPES)
OF_ENUM = np.full(_LARGEST_ENUM + 1, UNKNOWN, dtype=np.int64)
for _code, _dtype in enumerate(DTYPES):
    if _dtype.enum >= 0:
        OF_ENUM[_dtype.enum] = _code


def dtype_code(spelling: str | None) -> int:
    """Return the code of a type as a trace spells it; NONE for no tensor, UNKNOWN if not known."""
    return NONE if spelling is None else _SPELLED.get(spelling, UNKNOWN)


@njit
def dtype_of_enum(number: float) -> int:
    """Return the code of a ScalarType number, UNKNOWN for one that names no type here."""
    if not (number >= 0 and number < OF_ENUM.shape[0]):
        return UNKNOWN
    return OF_ENUM[int(number)]


# Types that PyTorch refuses to promote, and those that it promotes with floating types only.
_ALONE = frozenset(CODE[d.name] for d in DTYPES if d.name.startswith(("fp8", "fp4", "q")))
_UNSIGNED = frozenset(CODE[name] for name in ("uint16", "uint32", "uint64"))
_COMPLEX_OF = {
    FP16: CODE["complex32"],
    BF16: CODE["complex64"],
    FP32: CODE["complex64"],
    FP64: CODE["complex128"],
}
_PART_OF = {CODE["complex32"]: FP16, CODE["complex64"]: FP32, CODE["complex128"]: FP64}
_AS_NUMBER = {FP64: FP32, CODE["complex128"]: CODE["complex64"]}  # a Python number: default type


def _promoted(a: int, b: int) -> int:
    if {a, b} & {UNKNOWN, LIST}:
        return UNKNOWN
    if DTYPES[a].category == NO_CATEGORY or DTYPES[b].category == NO_CATEGORY:
        return b if DTYPES[a].category == NO_CATEGORY else a
    if a == b:
        return a
    if {a, b} & _ALONE:
        return UNKNOWN
    low, high = sorted((a, b), key=lambda code: DTYPES[code].category)
    if {a, b} & _UNSIGNED:
        return high if DTYPES[high].category == FLOATING else UNKNOWN
    if DTYPES[low].category == FLOATING and DTYPES[high].category == COMPLEX:
        return _COMPLEX_OF[_promoted(low, _PART_OF[high])]
    if DTYPES[low].category != DTYPES[high].category:
        return high
    if DTYPES[a].bytes != DTYPES[b].bytes:
        return max(a, b, key=lambda code: DTYPES[code].bytes)
    return FP32 if DTYPES[a].category == FLOATING else CODE["int16"]


def _promoted_weakly(strong: int, weak: int) -> int:
    if {strong, weak} & {UNKNOWN, LIST} or DTYPES[strong].category == NO_CATEGORY:
        return _promoted(strong, weak)
    if DTYPES[weak].category <= DTYPES[strong].category:
        return strong
    if DTYPES[strong].category == FLOATING:
        return _COMPLEX_OF.get(strong, UNKNOWN)
    return _promoted(strong, _AS_NUMBER.get(weak, weak))


_ALL = range(len(DTYPES))
_PROMOTED = np.array([[_promoted(a, b) for b in _ALL] for a in _ALL], dtype=np.int64)
_WEAKLY = np.array([[_promoted_weakly(a, b) for b in _ALL] for a in _ALL], dtype=np.int64)


@njit
def promote(a: int, b: int) -> int:
    """Return the type of a result of two tensors that both have dimensions.

    The higher category wins, inside one the wider; half with bfloat16 gives float, int8 with uint8
    int16. NONE and SCALAR give way to the other type. UNKNOWN where one is not known, and for pairs
    that PyTorch refuses: 8-bit floats and quantized types with others, 16 to 64-bit unsigned ones
    with integers. Source: perf_models A1; PyTorch's table of promotions.
    """
    return _PROMOTED[a, b]


@njit
def promote_weakly(strong: int, weak: int) -> int:
    """Return the type of a result of a tensor and a 0-dim tensor or a Python number.

    The weak one counts only if its category is higher; a Python number, which traces record as a
    0-dim double, is then of the default type. UNKNOWN as in `promote`. Source: perf_models A1.
    """
    return _WEAKLY[strong, weak]
