"""Runs, heartbeats, results, the archive and the graph on every store."""

from __future__ import annotations

import msgspec

from aof.api.fabric import Fabric
from aof.runs.model import Heartbeat, RunResult
from aof.store.port import Scope, Store
from aof.testing import FakeClock
from tests.contracts.drafts import commit, created, reading, writing
from tests.support.requirements import requirement


class TestRuns:
    """Attempts at a task."""

    def test_a_claim_is_a_run_with_a_heartbeat(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write").task_id
        claimed = fabric.claim(task_id, agent="ada")

        with fabric.store.unit(reading(task_id)) as unit:
            run, heartbeat = unit.run(task_id), unit.heartbeat(task_id)
            assert unit.result(task_id) is None
        assert run is not None
        assert heartbeat is not None
        assert (run.run_id, run.agent_id, run.status, run.attempt) == (claimed.run_id, "ada", "running", 1)
        assert (heartbeat.run_id, heartbeat.beat_count) == (claimed.run_id, 0)

    @requirement("aof1.events.heartbeats-are-none")
    def test_a_hundred_heartbeats_are_kept_and_are_no_events(self, fabric: Fabric, clock: FakeClock) -> None:
        task_id = fabric.create("Write").task_id
        run = fabric.claim(task_id, agent="ada").run_id
        before, task = list(fabric.store.events()), fabric.get(task_id)
        for _ in range(100):
            clock.sleep(10)
            fabric.heartbeat(task_id, run=run)

        with fabric.store.unit(reading(task_id)) as unit:
            heartbeat = unit.heartbeat(task_id)
        assert heartbeat is not None
        assert (heartbeat.beat_count, heartbeat.last_heartbeat) == (100, "2026-03-02T09:16:40.000Z")
        assert list(fabric.store.events()) == before
        assert fabric.get(task_id) == task

    @requirement("task.model.run")
    def test_a_retry_a_takeover_and_a_change_of_worker_are_each_a_new_run(
        self, fabric: Fabric, clock: FakeClock
    ) -> None:
        task_id = fabric.create("Write", max_attempts=9).task_id
        first = fabric.claim(task_id, agent="ada")
        fabric.fail(task_id, run=first.run_id)
        clock.sleep(60)
        retried = fabric.claim(task_id, agent="ada", ttl=30)
        clock.sleep(31)
        fabric.recover()
        clock.sleep(900)
        taken_over = fabric.claim(task_id, agent="bob")
        fabric.release(task_id, run=taken_over.run_id)
        changed = fabric.claim(task_id, agent="cem")

        claims = (first, retried, taken_over, changed)
        assert len({claim.run_id for claim in claims}) == 4
        assert [claim.epoch for claim in claims] == [1, 2, 3, 4]
        attempts = [(run.run_id, run.epoch, run.agent_id) for run in fabric.store.attempts(task_id)]
        assert attempts == [
            (claim.run_id, claim.epoch, agent)
            for claim, agent in zip(claims, ("ada", "ada", "bob", "cem"), strict=True)
        ]

    def test_a_result_belongs_to_its_run_and_the_next_run_begins_without_one(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write").task_id
        first = fabric.claim(task_id, agent="ada").run_id
        fabric.complete(task_id, run=first, outcome="needs_review", notes="look at it")
        with fabric.store.unit(reading(task_id)) as unit:
            result = unit.result(task_id)
        fabric.reject(task_id, blockers=["not yet"])
        fabric.claim(task_id, agent="bob")

        assert isinstance(result, RunResult)
        assert (result.run_id, result.outcome, result.notes) == (first, "needs_review", "look at it")
        with fabric.store.unit(reading(task_id)) as unit:
            assert unit.result(task_id) is None
            heartbeat = unit.heartbeat(task_id)
        assert heartbeat is not None
        assert heartbeat.agent_id == "bob"

    def test_every_attempt_is_kept_in_order(self, fabric: Fabric, clock: FakeClock) -> None:
        task_id = fabric.create("Write", max_attempts=9).task_id
        for agent in ("ada", "bob", "cem"):
            run = fabric.claim(task_id, agent=agent).run_id
            clock.sleep(1)
            fabric.fail(task_id, run=run, message=f"{agent} could not")
            clock.sleep(900)
        fabric.claim(task_id, agent="dea")

        attempts = fabric.store.attempts(task_id)
        assert [(run.attempt, run.agent_id, run.status) for run in attempts] == [
            (1, "ada", "failed"), (2, "bob", "failed"), (3, "cem", "failed"), (4, "dea", "running"),
        ]  # fmt: skip
        assert [run.error.message for run in attempts if run.error] == [
            "ada could not",
            "bob could not",
            "cem could not",
        ]
        assert len({run.run_id for run in attempts}) == 4

    def test_beat_writes_what_it_is_given(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write").task_id
        run = fabric.claim(task_id, agent="ada").run_id
        beat = Heartbeat(
            task_id=task_id, agent_id="ada", run_id=run, beat_count=77,
            last_heartbeat="2026-03-02T10:00:00.000Z", expires_at="2026-03-02T11:00:00.000Z",
        )  # fmt: skip
        with fabric.store.unit(writing(task_id)) as unit:
            unit.beat(beat)
            unit.flush()
        with fabric.store.unit(reading(task_id)) as unit:
            assert unit.heartbeat(task_id) == beat


class TestArchive:
    """What was put away."""

    def test_an_archived_task_keeps_everything(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write", brief="How.", review=False).task_id
        run = fabric.claim(task_id, agent="ada").run_id
        fabric.heartbeat(task_id, run=run)
        fabric.complete(task_id, run=run, notes="done it")
        with fabric.store.unit(reading(task_id)) as unit:
            before = unit.run(task_id), unit.result(task_id), unit.heartbeat(task_id)
        task, attempts = fabric.get(task_id), fabric.store.attempts(task_id)

        fabric.archive(task_id)

        archived = fabric.get(task_id)
        assert archived.archived
        assert msgspec.structs.replace(
            archived, archived=False, rev=task.rev, updated_at=task.updated_at
        ) == task  # fmt: skip
        with fabric.store.unit(reading(task_id)) as unit:
            assert (unit.run(task_id), unit.result(task_id), unit.heartbeat(task_id)) == before
        assert None not in before
        assert fabric.store.attempts(task_id) == attempts
        assert fabric.store.path_of(archived) == f"archive/tasks/{task_id}.md"

    def test_the_path_of_a_task_names_its_status(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write").task_id
        ready = fabric.get(task_id)
        fabric.claim(task_id, agent="ada")

        assert fabric.store.path_of(ready) == f"tasks/ready/{task_id}.md"
        assert fabric.store.path_of(fabric.get(task_id)) == f"tasks/in-progress/{task_id}.md"
        files = fabric.store.working_copy
        assert files is None or files.file_status(fabric.get(task_id)) is None


class TestGraph:
    """What lies around a task."""

    def test_children_dependents_and_ways_are_known(self, fabric: Fabric) -> None:
        top = fabric.create("Top").task_id
        low = fabric.create("Low", parent_id=top, depends_on=[top]).task_id
        last = fabric.create("Last", parent_id=top, depends_on=[low, top]).task_id
        beside = fabric.create("Beside", depends_on=[low]).task_id

        with fabric.store.unit(reading(top)) as unit:
            assert unit.children(top) == (low, last)
            assert unit.children(low) == ()
            assert unit.dependents(top) == (low, last)
            assert unit.dependents(low) == (last, beside)
            assert unit.reachable(last) == {last: (top, low), low: (top,)}
            assert unit.reachable(low) == {low: (top,)}
            assert unit.reachable(top) == {}

    def test_a_removed_dependency_is_gone_from_the_graph(self, fabric: Fabric) -> None:
        one, two = fabric.create("One").task_id, fabric.create("Two").task_id
        fabric.dep_add(two, one)
        with fabric.store.unit(reading(one)) as unit:
            assert unit.dependents(one) == (two,)

        fabric.dep_remove(two, one)

        with fabric.store.unit(reading(one)) as unit:
            assert unit.dependents(one) == ()
            assert unit.reachable(two) == {}

    def test_neighbours_come_by_day_and_number_also_past_999(self, store: Store, clock: FakeClock) -> None:
        ids = [f"TASK-2026-03-02-{number}" for number in (998, 999, 1000, 1001)]
        ids.append("TASK-2026-03-03-001")
        parent = "TASK-2026-03-02-001"
        fields = {"parentId": parent, "dependsOn": [parent]}
        commit(store, clock, created(parent), *(created(name, **fields) for name in reversed(ids)))

        with store.unit(reading(parent)) as unit:
            assert unit.children(parent) == tuple(ids)
            assert unit.dependents(parent) == tuple(ids)

    def test_who_occupies_a_resource_is_known_while_it_runs(self, fabric: Fabric) -> None:
        one, two = (fabric.create(title, resource="gpu").task_id for title in ("One", "Two"))
        fabric.create("Waits", resource="gpu")
        runs = [fabric.claim(task_id, agent="ada").run_id for task_id in (one, two)]
        with fabric.store.unit(reading(one)) as unit:
            assert unit.resource_holders("gpu") == (one, two)
        assert fabric.store.resources_in_use() == {"gpu": 2}

        fabric.release(one, run=runs[0])

        with fabric.store.unit(reading(one)) as unit:
            assert unit.resource_holders("gpu") == (two,)
            assert unit.resource_holders("vault") == ()
        assert fabric.store.resources_in_use() == {"gpu": 1}

    def test_a_key_stands_for_its_task_for_ever(self, fabric: Fabric) -> None:
        task_id = fabric.create("Write", key="Ünïque 1", review=False).task_id
        fabric.complete(task_id, actor="ada")
        fabric.archive(task_id)

        with fabric.store.unit(Scope()) as unit:
            assert unit.key_owner("Ünïque 1") == task_id
            assert unit.key_owner("ünïque 1") is None
        assert fabric.create("Write", key="Ünïque 1", review=False).task_id == task_id
