"""The log of every store, waiting for more of it, and short IDs."""

from __future__ import annotations

import threading

import pytest

from aof.api.fabric import Fabric
from aof.errors import AmbiguousId, TaskNotFound
from aof.kernel.model import Policy
from aof.service.clock import SystemClock
from aof.store.port import Store
from aof.testing import FakeClock
from tests.contracts.drafts import commit, created, moved


class TestShortIds:
    """Parts of an ID."""

    def test_a_part_stands_for_what_it_begins_at_a_dash_and_the_end_alone_is_enough(
        self, store: Store, clock: FakeClock
    ) -> None:
        names = ["2026-03-02-001", "2026-03-02-010", "2026-03-02-1001", "2026-03-03-001", "2026-11-03-002"]
        commit(store, clock, *(created(f"TASK-{name}") for name in names))
        commit(store, clock, moved("TASK-2026-11-03-002", "ready", "backlog"))
        expected = {
            "TASK-2026-03-02-001": names[:1],
            "2026-03-02-001": names[:1],
            "03-02-001": names[:1],
            "02-001": names[:1],
            "001": [names[0], names[3]],
            "010": names[1:2],
            "1001": names[2:3],
            "100": names[2:3],
            "1": [names[2], names[4]],
            "002": names[4:],
            "03-03": names[3:4],
            "03-001": names[3:4],
            "03-002": names[4:],
            "01": names[1:2],
            "0": names,
            "02": names[:3],
            "9": [],
            "0000000001": [],
            "TASK": names,
            "ASK": [],
            "task": [],
            "026": [],
            "%": [],
            "": names,
        }
        assert {part: [name.removeprefix("TASK-") for name in store.ids(part)] for part in expected} == expected

    def test_an_archived_task_is_still_found_by_its_short_id(self, team: Fabric) -> None:
        assert team.store.ids("007") == ("TASK-2026-03-02-007",)
        assert team.get("007").archived

    def test_an_ambiguous_part_and_one_for_nothing_are_refused(self, fabric: Fabric) -> None:
        one, two = fabric.create("One").task_id, fabric.create("Two").task_id
        with pytest.raises(AmbiguousId) as ambiguous:
            fabric.resolve("2026")
        with pytest.raises(TaskNotFound):
            fabric.resolve("777")

        assert ambiguous.value.details["matches"] == [two, one], "the newest first"


class TestEvents:
    """The log."""

    def test_events_come_in_order_from_any_number_on(self, team: Fabric) -> None:
        events = list(team.store.events())

        assert [event.seq for event in events] == list(range(1, team.store.head() + 1))
        for after in range(len(events) + 2):
            assert list(team.store.events(after)) == events[after:]

    def test_the_events_of_one_task_are_its_own_in_order(self, team: Fabric) -> None:
        events = list(team.store.events())
        for task_id in {event.task_id for event in events}:
            own = [event for event in events if event.task_id == task_id]
            assert list(team.store.events(task_id=task_id)) == own
            assert list(team.store.events(own[0].seq, task_id)) == own[1:]
        assert list(team.store.events(task_id="TASK-2026-03-02-999")) == []

    def test_reading_twice_gives_the_same(self, team: Fabric) -> None:
        assert list(team.store.events()) == list(team.store.events())

    def test_events_go_on_over_a_change_of_day_and_a_clock_that_is_set_back(
        self, fabric: Fabric, clock: FakeClock
    ) -> None:
        fabric.create("Today")
        clock.set("2026-03-04T00:00:01Z")
        fabric.create("Two days later")
        clock.set("2026-03-01T00:00:00Z")
        fabric.create("Before both")

        events = list(fabric.store.events())
        assert [event.seq for event in events] == list(range(1, 10))
        for after in range(9):
            assert next(fabric.store.events(after)).seq == after + 1


class TestWaiting:
    """More to come."""

    def test_waiting_ends_at_once_when_there_is_something_already(self, fabric: Fabric, clock: FakeClock) -> None:
        fabric.create("Write")

        assert fabric.store.wait(0, 60)
        assert fabric.store.wait(fabric.store.head() - 1, 0)
        assert clock.monotonic() == 0

    def test_waiting_in_vain_takes_as_long_as_was_said(self, fabric: Fabric, clock: FakeClock) -> None:
        fabric.create("Write")

        assert not fabric.store.wait(fabric.store.head(), 30)
        assert clock.monotonic() == pytest.approx(30)
        assert not fabric.store.wait(fabric.store.head(), 0)

    def test_whoever_waits_is_woken_by_an_event(self, live_store: Store) -> None:
        fabric = Fabric(live_store, SystemClock(), Policy(), "pm")
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(live_store.wait(0, 60)))
        waiter.start()
        fabric.create("Write")
        waiter.join(30)

        assert woken == [True]

    def test_a_follower_sees_every_event_once_and_in_order(self, live_store: Store) -> None:
        fabric = Fabric(live_store, SystemClock(), Policy(), "pm")
        fabric.create("Before")
        seen: list[int] = []
        enough = threading.Event()

        def follow() -> None:
            for event in fabric.follow(after=1, timeout=60):
                seen.append(event.seq)
                if event.seq >= 63:
                    enough.set()
                    return

        follower = threading.Thread(target=follow)
        follower.start()
        for number in range(20):
            fabric.create(f"Number {number}")
        assert enough.wait(30)
        follower.join(30)

        assert seen == list(range(2, 64))

    def test_a_follower_ends_when_nothing_comes(self, fabric: Fabric, clock: FakeClock) -> None:
        fabric.create("Write")

        assert [event.seq for event in fabric.follow(timeout=5)] == [1, 2, 3]
        assert clock.monotonic() == pytest.approx(5)
