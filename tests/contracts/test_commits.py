"""Commits on every store: numbers, places, all or nothing."""

from __future__ import annotations

import pytest

from aof.kernel.model import is_task_id
from aof.store.port import Scope, ScopeTooNarrow, Store
from aof.testing import FakeClock
from tests.contracts.drafts import NO_SUCH, commit, created, loaded, moved, reading, writing
from tests.support.present import present


class TestReservedIds:
    """Numbers for new tasks."""

    def test_every_reserved_id_is_a_new_one(self, store: Store, clock: FakeClock) -> None:
        ids = [store.reserve_id(clock.now()) for _ in range(50)]

        assert ids == [f"TASK-2026-03-02-{number:03d}" for number in range(1, 51)]
        assert all(map(is_task_id, ids))

    def test_numbers_go_on_past_999(self, store: Store, clock: FakeClock) -> None:
        ids = [store.reserve_id(clock.now()) for _ in range(1_001)]

        assert ids[998:] == ["TASK-2026-03-02-999", "TASK-2026-03-02-1000", "TASK-2026-03-02-1001"]

    def test_a_new_day_begins_at_one_and_the_day_never_goes_back(self, store: Store, clock: FakeClock) -> None:
        assert store.reserve_id(clock.now()) == "TASK-2026-03-02-001"
        clock.set("2026-03-03T00:00:00Z")
        assert store.reserve_id(clock.now()) == "TASK-2026-03-03-001"
        clock.set("2026-03-01T12:00:00Z")
        assert store.reserve_id(clock.now()) == "TASK-2026-03-03-002"

    def test_a_number_that_was_used_on_a_day_is_not_given_again(self, store: Store, clock: FakeClock) -> None:
        commit(store, clock, created("TASK-2026-03-02-007"))

        assert store.reserve_id(clock.now()) == "TASK-2026-03-02-008"

    def test_a_number_that_was_put_back_is_given_again_unless_another_one_was_given_since(
        self, store: Store, clock: FakeClock
    ) -> None:
        one = store.reserve_id(clock.now())
        store.put_back_id(one)
        assert store.reserve_id(clock.now()) == one

        two = store.reserve_id(clock.now())
        store.put_back_id(one)

        assert store.reserve_id(clock.now()) == f"{two[:-1]}3"

    def test_a_number_of_yesterday_is_not_put_back(self, store: Store, clock: FakeClock) -> None:
        yesterday = store.reserve_id(clock.now())
        clock.set("2026-03-03T00:00:00Z")
        today = store.reserve_id(clock.now())
        store.put_back_id(yesterday)

        assert (today, store.reserve_id(clock.now())) == ("TASK-2026-03-03-001", "TASK-2026-03-03-002")


class TestCommits:
    """Events and what follows from them."""

    def test_events_are_numbered_without_gaps_and_know_their_place_in_the_commit(
        self, store: Store, clock: FakeClock
    ) -> None:
        one, two = store.reserve_id(clock.now()), store.reserve_id(clock.now())

        events = commit(store, clock, created(one), created(two), moved(one, "ready", "backlog"))
        clock.sleep(1)
        (last,) = commit(store, clock, moved(one, "backlog", "ready"))

        assert [event.seq for event in (*events, last)] == [1, 2, 3, 4]
        assert [event.commit for event in (*events, last)] == [(1, 3), (2, 3), (3, 3), (1, 1)]
        assert events[0].timestamp == "2026-03-02T09:00:00.000Z"
        assert last.timestamp == "2026-03-02T09:00:01.000Z"
        assert store.head() == 4

    def test_a_commit_says_who_called_and_for_whom_only_when_that_is_somebody_else(
        self, store: Store, clock: FakeClock
    ) -> None:
        task_id = store.reserve_id(clock.now())
        with store.unit(writing(task_id)) as unit:
            unit.commit((created(task_id),), actor="pm", agent="pm", now=clock.now())
            unit.commit((moved(task_id, "ready", "backlog"),), actor="pm", agent="ada", now=clock.now())

        assert [(event.actor, event.agent) for event in store.events()] == [("pm", None), ("pm", "ada")]

    def test_the_records_follow_from_the_events_and_rev_is_the_last_event_of_each(
        self, store: Store, clock: FakeClock
    ) -> None:
        one, two = store.reserve_id(clock.now()), store.reserve_id(clock.now())

        commit(store, clock, created(one, body="Text.\n"), created(two), moved(one, "ready", "backlog"))

        first, second = loaded(store, one), loaded(store, two)
        assert first is not None
        assert second is not None
        assert (first.status, first.rev, first.body) == ("backlog", 3, "Text.\n")
        assert (second.status, second.rev) == ("ready", 2)

    def test_a_unit_sees_what_it_has_committed(self, store: Store, clock: FakeClock) -> None:
        task_id = store.reserve_id(clock.now())
        with store.unit(writing(task_id)) as unit:
            assert unit.task(task_id) is None
            unit.commit((created(task_id),), actor="pm", agent=None, now=clock.now())
            before = unit.task(task_id)
            unit.commit((moved(task_id, "ready", "backlog"),), actor="pm", agent=None, now=clock.now())
            after = unit.task(task_id)

        assert before is not None
        assert after is not None
        assert (before.status, after.status) == ("ready", "backlog")

    @pytest.mark.parametrize("bad", ["first", "last"])
    def test_a_commit_of_which_one_event_cannot_be_applied_changes_nothing(
        self, store: Store, clock: FakeClock, bad: str
    ) -> None:
        here, gone = store.reserve_id(clock.now()), store.reserve_id(clock.now())
        commit(store, clock, created(here))
        drafts = (moved(here, "ready", "backlog"), moved(gone, "ready", "backlog"))

        with pytest.raises(ValueError, match=gone):
            commit(store, clock, *(drafts if bad == "last" else drafts[::-1]))

        task = present(loaded(store, here))
        assert task.status == "ready"
        assert store.head() == 1
        assert [event.seq for event in store.events()] == [1]
        assert commit(store, clock, moved(here, "ready", "backlog"))[0].seq == 2

    def test_a_unit_that_fails_before_its_commit_changes_nothing(self, store: Store, clock: FakeClock) -> None:
        task_id = store.reserve_id(clock.now())
        with pytest.raises(ZeroDivisionError), store.unit(writing(task_id)):
            raise ZeroDivisionError

        assert store.head() == 0
        assert commit(store, clock, created(task_id))

    @pytest.mark.parametrize("scope", ["read", "nothing"])
    def test_what_is_not_locked_for_writing_is_not_written(self, store: Store, clock: FakeClock, scope: str) -> None:
        mine, other = store.reserve_id(clock.now()), "TASK-2026-03-02-065"  # 64 further: the same stripe of locks
        commit(store, clock, created(mine), created(other))
        locked = Scope(write=frozenset({mine}), read=frozenset({other} if scope == "read" else ()))
        drafts = (moved(mine, "ready", "backlog"), moved(other, "ready", "backlog"))

        with pytest.raises(ScopeTooNarrow) as wider, store.unit(locked) as unit:
            unit.commit(drafts, actor="pm", agent=None, now=clock.now())

        assert wider.value.scope.write >= {other}
        assert store.head() == 2

    def test_what_is_handed_out_is_nobody_elses(self, store: Store, clock: FakeClock) -> None:
        task_id = store.reserve_id(clock.now())
        draft = created(task_id, metadata={"kept": [1]})
        (event,) = commit(store, clock, draft)
        task = present(loaded(store, task_id))

        for mutable in (draft.payload["task"], event.payload["task"]):
            mutable["metadata"]["kept"].append(2)
        task.metadata["kept"].append(3)
        next(store.events()).payload["task"]["metadata"] = None

        assert present(loaded(store, task_id)).metadata == {"kept": [1]}
        assert next(store.events()).payload["task"]["metadata"] == {"kept": [1]}

    def test_what_does_not_exist_is_none(self, store: Store) -> None:
        with store.unit(reading(NO_SUCH)) as unit:
            assert unit.task(NO_SUCH) is None
            assert unit.edit(NO_SUCH) is None
            assert unit.run(NO_SUCH) is None
            assert unit.result(NO_SUCH) is None
            assert unit.heartbeat(NO_SUCH) is None
            assert unit.key_owner("no such key") is None
            assert unit.children(NO_SUCH) == unit.dependents(NO_SUCH) == unit.resource_holders("gpu") == ()
            assert unit.reachable(NO_SUCH) == {}
        assert store.attempts(NO_SUCH) == ()
        assert store.head() == 0
        assert list(store.events()) == []
