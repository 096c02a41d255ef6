"""Due times: exactly those of the expression, over changes of the clock, and what is made up for."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aof.errors import InvalidInput
from aof.jobs.rules import GRACE_MS, MOST_MISSED, Cron, due_times, latest, moment, next_after, parse_cron, zone
from aof.kernel.model import iso, millis

# --- due times: exactly those of the expression, over changes of the clock, and what is made up for


MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia")
_FIELD = st.one_of(st.just("*"), st.integers(1, 12).map(str), st.integers(1, 6).map(lambda n: f"*/{n}"))
_FIXED = st.lists(st.integers(0, 23), min_size=1, max_size=3).map(lambda hours: ",".join(map(str, hours)))
_MOMENTS = st.integers(millis("2011-12-20"), millis("2030-01-01")).map(lambda at: at // MINUTE * MINUTE)


def cron(text: str) -> Cron:
    found = parse_cron(text)
    assert isinstance(found, Cron), found
    return found


def where(name: str) -> tzinfo:
    found = zone(name)
    assert isinstance(found, tzinfo), found
    return found


def times(text: str, name: str, after: str, until: str) -> list[str]:
    return [iso(one)[:16] for one in latest(cron(text), where(name), millis(after), millis(until), 50)]


def brute(found: Cron, at: tzinfo, after: int, until: int) -> list[int]:
    """Every minute whose time on the wall the expression allows."""
    hits = []
    for one in range(after // MINUTE * MINUTE, until + 1, MINUTE):
        wall = datetime.fromtimestamp(one / 1000, tz=at)
        if one > after and wall.minute in found.minutes and wall.hour in found.hours and found.on(wall.date()):
            hits.append(one)
    return hits


@settings(max_examples=60, deadline=None)
@given(st.tuples(_FIELD, st.just("*"), _FIELD, _FIELD, st.just("*")), st.sampled_from(ZONES), _MOMENTS)
def test_where_hours_are_not_fixed_the_due_times_are_the_minutes_that_match(
    fields: tuple[str, ...], name: str, after: int
) -> None:
    found, until = cron(" ".join(fields)), after + 2 * DAY
    expected = brute(found, where(name), after, until)
    assert list(latest(found, where(name), after, until, 5_000)) == expected
    assert list(latest(found, where(name), after, until, 3)) == expected[-3:]
    following = next_after(found, where(name), after)
    assert following == expected[0] if expected else following is None or following > until


@settings(max_examples=60, deadline=None)
@given(_FIXED, st.integers(0, 59), st.sampled_from(ZONES), _MOMENTS)
def test_a_fixed_time_of_day_comes_once_a_day_whatever_the_clock_does(
    hours: str, minute: int, name: str, after: int
) -> None:
    found, at, until = cron(f"{minute} {hours} * * *"), where(name), after + 9 * DAY
    expected = brute(found, at, after, until)
    dues = latest(found, at, after, until, 500)
    assert list(dues) == sorted(set(dues))
    walls = [datetime.fromtimestamp(one / 1000, tz=UTC).astimezone(at).replace(fold=0, tzinfo=None) for one in dues]
    assert len(set(walls)) == len(walls)  # no time on the wall counts twice
    ordinary = [one for one in expected if not datetime.fromtimestamp(one / 1000, tz=UTC).astimezone(at).fold]
    assert set(ordinary) <= set(dues)
    extra = set(dues) - set(ordinary)  # only what the clock has jumped over is moved
    assert all(_near_a_change(one, at) for one in extra)
    chain = [next_after(found, at, one) for one in dues[:-1]]
    assert chain == list(dues[1:])


def _near_a_change(at: int, where: tzinfo) -> bool:
    """Whether the offset of the zone changes within the day before."""
    now = datetime.fromtimestamp(at / 1000, tz=UTC)
    return now.astimezone(where).utcoffset() != (now - timedelta(days=1, hours=1)).astimezone(where).utcoffset()


def test_a_fixed_time_that_the_clock_jumps_over_comes_right_after_and_one_that_comes_twice_comes_once() -> None:
    spring = times("30 2 * * *", "America/New_York", "2026-03-07", "2026-03-10")
    assert spring == ["2026-03-07T07:30", "2026-03-08T07:30", "2026-03-09T06:30"]  # 03:30 on the wall
    autumn = times("30 1 * * *", "America/New_York", "2026-10-31", "2026-11-03")
    assert autumn == ["2026-10-31T05:30", "2026-11-01T05:30", "2026-11-02T06:30"]


def test_every_half_hour_is_half_an_hour_also_when_the_clock_changes() -> None:
    for day in ("2026-03-08", "2026-11-01"):
        after = millis(day)
        dues = latest(cron("*/30 * * * *"), where("America/New_York"), after, after + DAY, 100)
        assert len(dues) == 48
        assert {later - one for one, later in pairwise(dues)} == {HOUR // 2}


def test_a_day_that_never_comes_has_no_due_time_and_a_rare_one_is_found() -> None:
    assert next_after(cron("0 0 30 2 *"), UTC, millis("2026-01-01")) is None
    found = next_after(cron("0 0 29 2 *"), UTC, millis("2096-03-01"))
    assert found == millis("2104-02-29")


@given(st.sampled_from(["* * * * *", "0 * * * *", "0 9 * * mon"]), st.integers(0, 40 * DAY), st.integers(0, 3 * DAY))
@settings(max_examples=60, deadline=None)
def test_what_is_made_up_for_follows_the_policy(text: str, begin: int, pause: int) -> None:
    found, handled = cron(text), millis("2026-02-01") + begin
    now = handled + pause
    every = latest(found, UTC, handled, now, 100_000)
    assert due_times(found, UTC, "all", handled, now) == every[-MOST_MISSED:]
    assert due_times(found, UTC, "once", handled, now) == every[-1:]
    assert due_times(found, UTC, "skip", handled, now) == tuple(one for one in every if one >= now - GRACE_MS)[-1:]


@pytest.mark.parametrize(
    ("policy", "late", "expected"),
    [("skip", GRACE_MS, 1), ("skip", GRACE_MS + 1, 0), ("once", DAY, 1), ("all", DAY, 1), ("once", -1, 0)],
)
def test_a_single_time_comes_once_and_late_if_the_policy_says_so(policy: str, late: int, expected: int) -> None:
    at = millis("2026-02-01T09:00")
    (word,) = (one for one in ("skip", "once", "all") if one == policy)
    assert due_times(at, UTC, word, at - DAY, at + late) == (at,) * expected
    assert due_times(at, UTC, word, at, at + late) == ()


def test_a_time_without_an_offset_is_meant_in_the_zone_of_the_job() -> None:
    assert moment("2026-07-01T09:00", where("Europe/Berlin")) == millis("2026-07-01T07:00Z")
    assert moment("2026-07-01T09:00+01:00", where("Europe/Berlin")) == millis("2026-07-01T08:00Z")
    for text in ("", "soon", "2026-13-01", "9999-12-31T23:59", "1900-01-01", "0001-01-01T00:00+14:00"):
        assert isinstance(moment(text, UTC), InvalidInput)


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe", "x" * 99, "a\0b"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    assert isinstance(zone(name), InvalidInput)


# --- cron expressions: what they allow, and what is none


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
