from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.formulas.dtypes import (
    BYTES,
    CODE,
    DTYPES,
    NONE,
    OF_ENUM,
    UNKNOWN,
    VALUES,
    dtype_code,
    dtype_of_enum,
    promote,
    promote_weakly,
)

# perf_models A1: spellings, bytes of a stored element, key of the peak.
SPELLINGS = [
    ("float c10::Float Float float32", 4, "fp32"),
    ("double c10::Double Double", 8, "fp64"),
    ("c10::Half Half", 2, "fp16"),
    ("c10::BFloat16 BFloat16", 2, "bf16"),
    ("c10::Float8_e4m3fn Float8_e4m3fn", 1, "fp8"),
    ("c10::Float8_e4m3fnuz Float8_e4m3fnuz", 1, "fp8"),
    ("c10::Float8_e5m2 Float8_e5m2", 1, "fp8"),
    ("c10::Float8_e5m2fnuz Float8_e5m2fnuz", 1, "fp8"),
    ("c10::Float8_e8m0fnu", 1, ""),
    ("c10::Float4_e2m1fn_x2", 1, "fp4"),
    ("signed char|Char", 1, "int8"),
    ("unsigned char|Byte", 1, ""),
    ("bool Bool", 1, ""),
    ("short|short int|Short", 2, ""),
    ("int Int", 4, "int32"),
    ("long int|long|long long|Long", 8, ""),
    ("unsigned short|UInt16", 2, ""),
    ("unsigned int|UInt32", 4, ""),
    ("unsigned long|UInt64", 8, ""),
    ("c10::complex<c10::Half>", 4, ""),
    ("c10::complex<float> ComplexFloat", 8, "fp32"),
    ("c10::complex<double> ComplexDouble", 16, "fp64"),
    ("c10::qint8 c10::quint8", 1, "int8"),
    ("c10::qint32", 4, "int8"),
    ("Scalar", 0, ""),
]


def spelled(text):
    return text.split("|") if "|" in text else text.split(" ")


@pytest.mark.parametrize(
    ("spelling", "size", "precision"),
    [(one, size, key) for text, size, key in SPELLINGS for one in spelled(text)],
)
def test_bytes_and_precision(spelling, size, precision):
    code = dtype_code(spelling)
    assert code != UNKNOWN
    assert BYTES[code] == size
    assert DTYPES[code].precision == precision


def test_two_values_share_a_byte_of_float4_only():
    packed = CODE["fp4_e2m1x2"]
    assert [DTYPES[i].name for i in range(len(DTYPES)) if VALUES[i] != 1] == [DTYPES[packed].name]
    assert VALUES[packed] == 2


@pytest.mark.parametrize("word", ["", "None", None, "ScalarList", "Device", "Layout", "Dtype"])
def test_no_tensor(word):
    assert dtype_code(word) == NONE


@pytest.mark.parametrize("word", ["TensorList", "GenericList"])
def test_bytes_of_a_list_are_not_in_its_type(word):
    assert math.isnan(BYTES[dtype_code(word)])


@pytest.mark.parametrize(
    "word", ["float ", "FLOAT", "c10::Float9", "*bf16", "unknown", "list", "ф"]
)
def test_unknown_spellings(word):
    assert dtype_code(word) == UNKNOWN
    assert math.isnan(BYTES[UNKNOWN])


@given(st.text())
def test_any_text_is_a_code(word):
    assert 0 <= dtype_code(word) < len(DTYPES)


ENUM = "uint8 int8 int16 int32 int64 fp16 fp32 fp64 complex32 complex64 complex128 bool qint8"
ENUM += " quint8 qint32 bf16"
ENUM_AFTER_23 = "fp8_e5m2 fp8_e4m3fn fp8_e5m2fnuz fp8_e4m3fnuz uint16 uint32 uint64"


def test_scalar_type_numbers():
    names = dict(enumerate(ENUM.split())) | dict(enumerate(ENUM_AFTER_23.split(), start=23))
    names |= {44: "fp8_e8m0fnu", 45: "fp4_e2m1x2"}
    for number in range(60):
        assert DTYPES[dtype_of_enum(number)].name == names.get(number, "unknown")
    assert len(OF_ENUM) == 46


@pytest.mark.parametrize("number", [-1.0, math.nan, math.inf, -math.inf, 1e300, 46.0, 2.0**63])
def test_numbers_of_no_type(number):
    assert dtype_of_enum(number) == UNKNOWN


# Result of two types, as PyTorch's table of promotions has it; `-` where PyTorch raises an error.
PROMOTED = """
     bool u8   i8   i16  i32  i64  u16  u32  u64  f16  bf16 f32  f64  c32  c64  c128 f8   q8
bool bool u8   i8   i16  i32  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
u8   u8   u8   i16  i16  i32  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
i8   i8   i16  i8   i16  i32  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
i16  i16  i16  i16  i16  i32  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
i32  i32  i32  i32  i32  i32  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
i64  i64  i64  i64  i64  i64  i64  -    -    -    f16  bf16 f32  f64  c32  c64  c128 -    -
u16  -    -    -    -    -    -    u16  -    -    f16  bf16 f32  f64  -    -    -    -    -
u32  -    -    -    -    -    -    -    u32  -    f16  bf16 f32  f64  -    -    -    -    -
u64  -    -    -    -    -    -    -    -    u64  f16  bf16 f32  f64  -    -    -    -    -
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  c32  c64  c128 -    -
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64  c64  c64  c128 -    -
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  c64  c64  c128 -    -
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128 c128 -    -
c32  c32  c32  c32  c32  c32  c32  -    -    -    c32  c64  c64  c128 c32  c64  c128 -    -
c64  c64  c64  c64  c64  c64  c64  -    -    -    c64  c64  c64  c128 c64  c64  c128 -    -
c128 c128 c128 c128 c128 c128 c128 -    -    -    c128 c128 c128 c128 c128 c128 c128 -    -
f8   -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    f8   -
q8   -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    -    q8
"""
# Result of a tensor (left) and a 0-dim tensor or a Python number (above).
WEAKLY = """
     bool u8   i8   i16  i32  i64  u16  f16  bf16 f32  f64  c32  c64  c128 f8
bool bool u8   i8   i16  i32  i64  -    f16  bf16 f32  f32  c32  c64  c64  -
u8   u8   u8   u8   u8   u8   u8   u8   f16  bf16 f32  f32  c32  c64  c64  -
i8   i8   i8   i8   i8   i8   i8   i8   f16  bf16 f32  f32  c32  c64  c64  -
i16  i16  i16  i16  i16  i16  i16  i16  f16  bf16 f32  f32  c32  c64  c64  -
i32  i32  i32  i32  i32  i32  i32  i32  f16  bf16 f32  f32  c32  c64  c64  -
i64  i64  i64  i64  i64  i64  i64  i64  f16  bf16 f32  f32  c32  c64  c64  -
u16  u16  u16  u16  u16  u16  u16  u16  f16  bf16 f32  f32  -    -    -    -
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  c32  c32  c32  f16
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 c64  c64  c64  bf16
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  c64  c64  c64  f32
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128 c128 f64
c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32  c32
c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128
f8   f8   f8   f8   f8   f8   f8   f8   f8   f8   f8   f8   -    -    -    f8
"""
SHORT = {"u": "uint", "i": "int", "f": "fp", "c": "complex"}


def code_of(word):
    if word == "-":
        return UNKNOWN
    special = {"f8": "fp8_e4m3fn", "q8": "qint8", "bool": "bool", "bf16": "bf16"}
    return CODE[special.get(word) or SHORT[word[0]] + word[1:]]


def cells(table):
    head, *lines = (line.split() for line in table.strip().splitlines())
    return [
        (left, above, result)
        for left, *results in lines
        for above, result in zip(head, results, strict=True)
    ]


@pytest.mark.parametrize(("left", "above", "result"), cells(PROMOTED))
def test_promotion(left, above, result):
    assert promote(code_of(left), code_of(above)) == code_of(result)


@pytest.mark.parametrize(("left", "above", "result"), cells(WEAKLY))
def test_weak_promotion(left, above, result):
    assert promote_weakly(code_of(left), code_of(above)) == code_of(result)


def test_promotion_does_not_depend_on_the_order():
    for a in range(len(DTYPES)):
        for b in range(len(DTYPES)):
            assert promote(a, b) == promote(b, a) or {a, b} <= {NONE, CODE["scalar"]}


@pytest.mark.parametrize("rule", [promote, promote_weakly])
def test_no_tensor_gives_way_and_unknown_stays(rule):
    for code in range(4, len(DTYPES)):
        for absent in (NONE, CODE["scalar"]):
            assert rule(code, absent) == rule(absent, code) == code
        for unknown in (UNKNOWN, CODE["list"]):
            assert rule(code, unknown) == rule(unknown, code) == UNKNOWN
