"""Units of work on every store keep out of each other's way."""

from __future__ import annotations

import threading
from typing import Any

from aof.errors import AofError, LockTimeout
from aof.store.port import Scope, Store
from aof.testing import FakeClock
from tests.contracts.drafts import NO_SUCH, created, writing


class TestLocks:
    """Who waits for whom."""

    def test_a_writer_waits_for_a_writer_and_gives_up_within_bounds(self, hasty_store: Store) -> None:
        with hasty_store.unit(writing(NO_SUCH)):
            refused = _in_thread(lambda: hasty_store.unit(writing(NO_SUCH)).__enter__())

        assert isinstance(refused, LockTimeout)

    def test_a_waiting_writer_goes_on_when_the_other_is_done(self, live_store: Store) -> None:
        inside, order = threading.Event(), []

        def wait() -> None:
            inside.set()
            with live_store.unit(writing(NO_SUCH)):
                order.append("second")

        with live_store.unit(writing(NO_SUCH)):
            other = threading.Thread(target=wait)
            other.start()
            assert inside.wait(10)
            order.append("first")
        other.join(10)

        assert order == ["first", "second"]

    def test_a_named_lock_keeps_units_apart(self, hasty_store: Store) -> None:
        graph = Scope(names=frozenset({"graph"}))
        with hasty_store.unit(graph):
            refused = _in_thread(lambda: hasty_store.unit(graph).__enter__())

        assert isinstance(refused, LockTimeout)

    def test_questions_about_all_tasks_are_answered_while_somebody_writes(self, store: Store, clock: FakeClock) -> None:
        with store.unit(writing(NO_SUCH)):
            assert store.ids("2026") == ()
            assert store.resources_in_use() == {}

    def test_eight_threads_on_one_store_lose_nothing(self, live_store: Store) -> None:
        def work(name: int) -> None:
            for _ in range(10):
                task_id = live_store.reserve_id(1_772_442_000_000)
                with live_store.unit(writing(task_id)) as unit:
                    unit.commit((created(task_id),), actor=f"agent-{name}", agent=None, now=1_772_442_000_000)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        events = list(live_store.events())
        assert [event.seq for event in events] == list(range(1, 81))
        assert len({event.task_id for event in events}) == 80


def _in_thread(act: Any) -> object:
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(act())
        except AofError as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    return outcome[0]
