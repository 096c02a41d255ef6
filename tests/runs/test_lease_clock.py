"""A turned wall clock neither ends a lease nor keeps a dead one alive."""

from __future__ import annotations

import msgspec
import pytest

from aof.kernel.model import iso
from aof.runs.evolve import Boot, present_heartbeat, running_for, stamped_heartbeat
from aof.runs.model import Heartbeat, lease_end
from aof.tasks.model import Lease
from tests.support.world import MINUTE, MONDAY

HOURS = 120 * MINUTE
TTL = 5 * MINUTE
HERE, ELSEWHERE = Boot("here", 1_000_000), Boot("elsewhere", 7)
LEASE = Lease(
    agent="ada",
    run_id="RUN-1",
    epoch=1,
    acquired_at=iso(MONDAY),
    expires_at=iso(MONDAY + TTL),
    ttl_ms=TTL,
    worker="pull",
)


def beat(at: int = MONDAY, count: int = 0, lasts: int = TTL) -> Heartbeat:
    """A sign of life by the wall clock alone."""
    return Heartbeat(
        task_id="T",
        agent_id="ada",
        run_id="RUN-1",
        last_heartbeat=iso(at),
        beat_count=count,
        expires_at=iso(at + lasts),
    )


def left(heartbeat: Heartbeat, now: int, boot: Boot | None) -> int:
    """How long the lease still lasts."""
    return lease_end(LEASE, present_heartbeat(heartbeat, now, boot)) - now


def later(boot: Boot, millis: int) -> Boot:
    """The same start, some time on."""
    return Boot(boot.id, boot.at + millis)


@pytest.mark.parametrize("turned", [-2 * HOURS, -HOURS, 0, HOURS, 2 * HOURS])
def test_under_the_same_start_only_the_time_that_passed_counts(turned: int) -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    for passed in (0, MINUTE, TTL - 1, TTL, TTL + MINUTE):
        assert left(written, MONDAY + passed + turned, later(HERE, passed)) == TTL - passed


@pytest.mark.parametrize("turned", [-HOURS, HOURS])
def test_a_beat_after_the_clock_was_turned_lasts_as_long_as_any_other(turned: int) -> None:
    first = stamped_heartbeat(beat(), None, HERE)
    second = stamped_heartbeat(beat(MONDAY + MINUTE + turned, 1), first, later(HERE, MINUTE))
    assert left(second, MONDAY + turned + 2 * MINUTE, later(HERE, 2 * MINUTE)) == TTL - MINUTE
    assert left(second, MONDAY + turned + 6 * MINUTE, later(HERE, 6 * MINUTE)) == 0


def test_the_later_of_the_lease_and_a_shorter_beat_counts() -> None:
    short = stamped_heartbeat(
        beat(MONDAY + MINUTE, 1, lasts=1000), stamped_heartbeat(beat(), None, HERE), later(HERE, MINUTE)
    )
    assert left(short, MONDAY + MINUTE, later(HERE, MINUTE)) == TTL - MINUTE


@pytest.mark.parametrize("boot", [ELSEWHERE, None])
def test_after_another_start_the_wall_clock_counts_within_bounds(boot: Boot | None) -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    assert left(written, MONDAY + MINUTE, boot) == TTL - MINUTE
    assert left(written, MONDAY + TTL, boot) == 0
    assert left(written, MONDAY - TTL, boot) == 2 * TTL, "clocks of two machines may differ by as much as a lease"
    assert left(written, MONDAY - TTL - 1, boot) == 0, "a sign of life from that far ahead is not believed"


def test_without_a_count_there_is_only_the_wall_clock() -> None:
    assert stamped_heartbeat(beat(), None, None) == beat()
    assert left(beat(), MONDAY + MINUTE, HERE) == TTL - MINUTE
    assert present_heartbeat(None, MONDAY, HERE) is None


def test_how_long_a_run_lasts_does_not_depend_on_the_wall_clock_either() -> None:
    written = stamped_heartbeat(beat(), None, HERE)
    again = stamped_heartbeat(beat(MONDAY + MINUTE - HOURS, 1), written, later(HERE, MINUTE))
    assert running_for(LEASE, again, MONDAY + HOURS, later(HERE, 3 * MINUTE)) == 3 * MINUTE
    assert running_for(LEASE, again, MONDAY + MINUTE, ELSEWHERE) == MINUTE
    assert running_for(LEASE, None, MONDAY - HOURS, HERE) == 0
    foreign = msgspec.structs.replace(again, run_id="RUN-2")
    assert running_for(LEASE, foreign, MONDAY + 2 * MINUTE, later(HERE, 9 * MINUTE)) == 2 * MINUTE
