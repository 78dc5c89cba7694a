"""Pointers of a compiled kernel: what they are for, and the bytes of what they point at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a kernel does with a pointer, as its name says."""

    IN = "in"
    OUT = "out"
    IN_OUT = "in_out"
    WORKSPACE = "workspace"  # scratch and semaphores: no data
    UNKNOWN = "unknown"


READS = frozenset({Role.IN, Role.IN_OUT})
WRITES = frozenset({Role.OUT, Role.IN_OUT})

_ROLES = (
    ("in_out_ptr", Role.IN_OUT),
    ("in_ptr", Role.IN),
    ("out_ptr", Role.OUT),
    ("ws_ptr", Role.WORKSPACE),
    ("semaphores_ptr", Role.WORKSPACE),
)


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer of a kernel's signature.

    type: as the signature spells it. bytes: of an element, None if the type is not known.
    is_full: whether the kernel stores an element for each step of its reduction, None if it stores
    nothing there that was seen.
    """

    name: str
    type: str
    bytes: int | None
    role: Role
    is_full: bool | None = None


# Spellings of Triton's signatures, of fx annotations, of torch, C++ and c10, by bytes.
_WIDTHS = {
    1: """
        i1 i8 u8 b8 bool int8 uint8 int8_t uint8_t Bool Byte Char char signed.char unsigned.char
        fp8e4nv fp8e5 fp8e4b8 fp8e5b16 fp8e4b15 fp8e4b15x4 fp8e8m0 fp8e8m0fnu float8e4nv float8e5
        f8e5m2 f8e4m3fn f8e5m2fnuz f8e4m3fnuz f8e8m0fnu f4e2m1fnx2
        float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz float8_e8m0fnu float4_e2m1fn_x2
        Float8_e5m2 Float8_e4m3fn Float8_e5m2fnuz Float8_e4m3fnuz Float8_e8m0fnu Float4_e2m1fn_x2
        qint8 quint8 QInt8 QUInt8 b8x1 b1x8 b2x4 b4x2 bits8 bits1x8 bits2x4 bits4x2
    """,
    2: """
        i16 u16 fp16 bf16 f16 int16 uint16 int16_t uint16_t float16 bfloat16 half Half BFloat16
        short Short UInt16 short.int unsigned.short short.unsigned.int b16x1 bits16
    """,
    4: """
        i32 u32 fp32 f32 tf32 int32 uint32 int32_t uint32_t float32 float Float int Int UInt32
        unsigned unsigned.int qint32 QInt32 c32 complex32 ComplexHalf chalf complex<Half>
    """,
    8: """
        i64 u64 fp64 f64 int64 uint64 int64_t uint64_t float64 double Double long Long UInt64
        long.int long.long long.long.int unsigned.long long.unsigned.int unsigned.long.long
        c64 complex64 ComplexFloat cfloat complex<float>
    """,
    16: "c128 complex128 ComplexDouble cdouble complex<double>",
}
_BYTES = {
    spelling.replace(".", " "): width
    for width, spellings in _WIDTHS.items()
    for spelling in spellings.split()
}


def element_bytes(type_: str) -> int | None:
    """Return the bytes of an element of a type, with or without `*`; None if it is not known.

    All spellings will do: `*bf16` and `*kbf16` (const) of Triton, `bf16` of an annotation,
    `c10::BFloat16`, `torch.bfloat16`.
    """
    name = type_.strip().removeprefix("*").replace("c10::", "").removeprefix("torch.").strip()
    found = _BYTES.get(name)
    if found is None and type_.startswith("*k"):
        return _BYTES.get(name.removeprefix("k"))
    return found


def role_of(name: str) -> Role:
    """Return what a kernel does with its parameter `name`."""
    return next((role for prefix, role in _ROLES if name.startswith(prefix)), Role.UNKNOWN)
