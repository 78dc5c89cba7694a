"""Exact time. The first examples are field_cases.md F26, F27, F40, F42, F49."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehouse.units import ns_of_us


@pytest.mark.parametrize(
    ("us", "ns", "is_exact"),
    [
        (Decimal("102.95699890136719"), 102_957, False),  # 102956.998… rounds to the nearest
        (
            "1893456000000123.457",
            1_893_456_000_000_123_457,
            False,
        ),  # in quotes: not what stood there
        (
            Decimal("1692312345678901.234"),
            1_692_312_345_678_901_234,
            True,
        ),  # a double gives …901.25
        (Decimal("100.7"), 100_700, True),
        (Decimal("0.2"), 200, True),
        (Decimal("0.0005"), 1, False),  # half up
        (Decimal("0.0004999"), 0, False),
        (Decimal("-0.0005"), 0, False),  # half up is towards +∞
        (Decimal("-0.0006"), -1, False),
        (7, 7_000, True),
        (Decimal("1e3"), 1_000_000, True),
        (Decimal("18446744073709551.000"), None, True),  # a wrapped difference
        (Decimal("1e400"), None, True),
        (10**30, None, True),
        ("N/A", None, False),
        ("12,5", None, False),
        ("", None, False),
        ("1_000", None, False),
        ("Infinity", None, False),
        (None, None, False),
        (True, None, False),
        ([], None, False),
    ],
)
def test_worked(us, ns, is_exact):
    assert ns_of_us(us) == (ns, is_exact)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_nanosecond_survives(ns):
    us = f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}"
    assert ns_of_us(Decimal(us)) == (ns, True)
