"""Cron expressions: what they allow, and what is none."""

from __future__ import annotations

from datetime import date

import pytest

from aof.errors import InvalidInput
from aof.jobs.rules import Cron, parse_cron


def cron(text: str) -> Cron:
    found = parse_cron(text)
    assert isinstance(found, Cron), found
    return found


def test_lists_ranges_steps_and_names_are_read() -> None:
    found = cron("0,30,5-9/2 8-18/5 1,15 jan-mar,DEC mon-fri")
    assert found.minutes == (0, 5, 7, 9, 30)
    assert found.hours == (8, 13, 18)
    assert found.days == {1, 15}
    assert found.months == {1, 2, 3, 12}
    assert found.weekdays == {1, 2, 3, 4, 5}
    assert cron("10/20 * * * *").minutes == (10, 30, 50)
    assert cron("@Daily") == cron("0 0 * * *")
    assert cron("0 0 * * 7").weekdays == cron("0 0 * * sun").weekdays == {0}
    assert len(cron("* * * * *").weekdays) == 7
    assert cron("0 0 * * sat-sun").weekdays == {0, 6}
    assert len(cron("0 0 * * mon-sun").weekdays) == 7
    assert cron("0 0 * * sun-tue").weekdays == {0, 1, 2}


def test_a_day_matches_both_fields_or_where_both_are_restricted_either() -> None:
    friday_13, friday_20, monday_13 = date(2026, 2, 13), date(2026, 2, 20), date(2026, 4, 13)
    either = cron("0 0 13 * fri")
    assert either.on(friday_13)
    assert either.on(friday_20)
    assert either.on(monday_13)
    assert not either.on(date(2026, 2, 19))
    assert not cron("0 0 * * fri").on(monday_13)
    assert not cron("0 0 13 * *").on(friday_20)


@pytest.mark.parametrize(
    "text",
    [
        "", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *",
        "*/0 * * * *", "*/ * * * *", "1,,2 * * * *", "-1 * * * *", "a * * * *", "* * * mon *", "@reboot",
        "\uff11 * * * *", "+1 * * * *", "1e1 * * * *", "0x1 * * * *", "* * * * " + "1," * 200 + "1", 5, None,
    ],
)  # fmt: skip
def test_what_is_no_expression_is_refused(text: object) -> None:
    assert isinstance(parse_cron(text), InvalidInput)
