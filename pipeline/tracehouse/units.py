"""Exact conversion of the decimal microseconds of a trace to integer nanoseconds."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any

INT64_MAX = 2**63 - 1
INT64_MIN = -(2**63)

_HALF = Decimal("0.5")
_WIDE = Context(prec=120, rounding=ROUND_FLOOR)
_LONGEST = 60  # characters of a number in quotes that is still read


def ns_of_us(value: Any) -> tuple[int | None, bool]:
    """Convert microseconds to nanoseconds, rounding half up.

    `value` is an int, a Decimal, or a number in quotes; never a float. Returns the nanoseconds,
    None if the value is no number or does not fit 63 bits; and whether nothing was lost (for None:
    whether it was a number at all). Source: field_cases.md, "Rules used below" and F27, F40, F49.
    """
    quoted = isinstance(value, str)
    if quoted:
        text = value.strip()
        if not text or len(text) > _LONGEST or not text.isascii() or "_" in text:
            return None, False
        try:
            value = Decimal(text)
        except InvalidOperation:
            return None, False
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None, False
    number = Decimal(value)
    if not number.is_finite():
        return None, False
    if number.adjusted() > 18:
        return None, True
    if number.adjusted() < -60:
        return 0, not number and not quoted
    scaled = _WIDE.multiply(number, Decimal(1000))
    ns = int(_WIDE.add(scaled, _HALF).to_integral_value(rounding=ROUND_FLOOR))
    if not INT64_MIN <= ns <= INT64_MAX:
        return None, True
    return ns, scaled == ns and not quoted
