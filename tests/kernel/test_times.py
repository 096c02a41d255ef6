"""Moments inside and outside."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from aof.kernel.model import day, iso, millis

MOMENTS = st.integers(0, 253_402_300_799_999)


@given(moment=MOMENTS)
def test_a_moment_comes_back_from_its_text(moment: int) -> None:
    assert millis(iso(moment)) == moment


@given(first=MOMENTS, second=MOMENTS)
def test_the_order_of_texts_is_the_order_of_time(first: int, second: int) -> None:
    assert (iso(first) < iso(second)) == (first < second)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-03-02T10:00:00+01:00", "2026-03-02T09:00:00.000Z"),
        ("2026-03-02T09:00:00", "2026-03-02T09:00:00.000Z"),
        ("2026-03-02T09:00:00.123456Z", "2026-03-02T09:00:00.123Z"),
        ("2026-03-02", "2026-03-02T00:00:00.000Z"),
    ],
)
def test_other_spellings_of_a_moment_are_read(text: str, same: str) -> None:
    assert iso(millis(text)) == same


def test_what_is_no_moment_is_an_error() -> None:
    with pytest.raises(ValueError, match="tomorrow"):
        millis("tomorrow")


def test_a_day_is_the_utc_day() -> None:
    assert day(millis("2026-03-02T23:30:00-01:00")) == "2026-03-03"
