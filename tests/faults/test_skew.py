"""Decisions that are right alone and wrong together, taken by real processes at the same moment."""

from __future__ import annotations

import multiprocessing
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from aof.errors import DependencyCycle, TaskNotFound
from aof.service.bootstrap import open_fabric
from aof.store.files.locks import boot_id
from aof.store.lists import Query
from tests.support.invariants import check_invariants
from tests.support.processes import SharedClock, outcome, together
from tests.support.requirements import requirement


def settled(root: Path) -> None:
    """Everything that must hold of a data directory holds."""
    check_invariants(root, boot=boot_id())


def is_acyclic(edges: dict[str, set[str]]) -> bool:
    """Whether all can be done, one after the other."""
    while free := {task_id for task_id, waits in edges.items() if not waits}:
        edges = {task_id: waits - free for task_id, waits in edges.items() if task_id not in free}
    return not edges


class TestSkew:
    """Decisions that are right alone and wrong together."""

    @requirement("tools.dep-add.cycle")
    def test_no_circle_is_ever_made_not_even_by_two_halves_at_once(self, quick: Path) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            a, b, *chain = (fabric.create(f"Number {number}").task_id for number in range(12))
            with pytest.raises(DependencyCycle) as itself:
                fabric.dep_add(a, a)
            assert itself.value.details["path"] == [a]
            fabric.dep_add(a, b)
            with pytest.raises(DependencyCycle) as mutual:
                fabric.dep_add(b, a)
            assert mutual.value.details["path"] == [b, a, b]
            for waiting, blocker in pairwise(chain):
                fabric.dep_add(waiting, blocker)
            with pytest.raises(DependencyCycle) as long:
                fabric.dep_add(chain[-1], chain[0])
            assert long.value.details["path"] == [chain[-1], *chain]
            assert all(task_id in long.value.message for task_id in chain)
            pairs = [(fabric.create("One").task_id, fabric.create("Two").task_id) for _ in range(15)]
            fours = [tuple(fabric.create(f"Number {number}").task_id for number in range(4)) for _ in range(15)]
            for one, two, three, four in fours:
                fabric.dep_add(one, two)
                fabric.dep_add(three, four)
        halves = [((one, two), (two, one)) for one, two in pairs]
        halves += [((two, three), (four, one)) for one, two, three, four in fours]
        ready = multiprocessing.get_context("fork").Barrier(2)

        def add(number: int) -> list[str]:
            outcomes = []
            with open_fabric(quick, actor="pm") as mine:
                for half in halves:
                    ready.wait(60)
                    outcomes.append(outcome(mine.dep_add, *half[number]))
            return outcomes

        for codes in zip(*together(2, add), strict=True):
            assert sorted(codes) == ["dependency_cycle", "ok"]
        with open_fabric(quick) as fabric:
            assert is_acyclic({task.id: set(task.depends_on) for task in fabric.store.find(Query()).tasks})
        settled(quick)

    @requirement("task.graph.sound")
    def test_the_graph_stays_sound_whatever_several_processes_add_to_it(self, quick: Path) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            ids = [fabric.create(f"Number {number}").task_id for number in range(8)]

        def add(number: int) -> Counter[str]:
            chance = random.Random(number)
            with open_fabric(quick, actor="pm") as mine:
                return Counter(outcome(mine.dep_add, chance.choice(ids), chance.choice(ids)) for _ in range(60))

        codes = sum(together(4, add), Counter())

        assert codes.keys() == {"ok", "dependency_cycle"}
        with open_fabric(quick, actor="pm") as fabric:
            assert is_acyclic({task.id: set(task.depends_on) for task in fabric.store.find(Query()).tasks})
            with pytest.raises(TaskNotFound):
                fabric.dep_add(ids[0], "TASK-2020-01-01-001")
            parent = fabric.create("Parent").task_id
            child = fabric.create("Child", parent_id=parent, depends_on=[parent]).task_id
            assert fabric.get(child).depends_on == (parent,), "a parent edge is not a dependency"
            waiting = fabric.create("Waits", depends_on=[ids[0]]).task_id
            fabric.cancel(ids[0])
            blocked = fabric.get(waiting)
            assert (blocked.status, blocked.blocked and blocked.blocked.reason) == (
                "blocked",
                f"dependency {ids[0]} is cancelled",
            )
        settled(quick)

    @pytest.mark.parametrize(("resource", "slots"), [("lab", 1), ("pair", 2)])
    def test_a_resource_is_never_shared_by_more_than_it_has_slots(self, quick: Path, resource: str, slots: int) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            rounds = [
                [fabric.create(f"Number {number}", resource=resource).task_id for number in range(4)] for _ in range(10)
            ]
        ready = multiprocessing.get_context("fork").Barrier(4)

        def claim(number: int) -> list[str]:
            outcomes = []
            with open_fabric(quick) as mine:
                for tasks in rounds:
                    ready.wait(60)
                    outcomes.append(outcome(mine.claim, tasks[number], agent=f"agent-{number}"))
                    ready.wait(60)
                    if outcomes[-1] == "ok":
                        mine.release(tasks[number], agent=f"agent-{number}")
            return outcomes

        for codes in zip(*together(4, claim), strict=True):
            assert Counter(codes) == {"ok": slots, "resource_busy": 4 - slots}
        settled(quick)

    def test_no_child_slips_under_a_parent_that_is_being_cancelled(self, quick: Path) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            parents = [fabric.create("Parent").task_id for _ in range(20)]
        ready = multiprocessing.get_context("fork").Barrier(3)

        def act(number: int) -> list[str]:
            outcomes = []
            with open_fabric(quick, actor="pm") as mine:
                for parent in parents:
                    ready.wait(60)
                    if number:
                        outcomes.append(outcome(mine.create, "Child", parent_id=parent))
                    else:
                        outcomes.append(mine.cancel(parent).status)
            return outcomes

        cancelled, *children = together(3, act)

        assert set(cancelled) == {"cancelled"}
        with open_fabric(quick) as fabric:
            tasks = fabric.store.find(Query()).tasks
        assert {task.status for task in tasks} == {"cancelled"}, "a child was there before and went with its parent"
        made = [code for some in children for code in some if code == "ok"]
        assert len(tasks) == len(parents) + len(made)
        assert {code for some in children for code in some} <= {"ok", "cancel_requested"}
        settled(quick)

    def test_a_dependent_is_never_left_waiting_for_a_task_that_dies_meanwhile(self, quick: Path) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            pairs = [(fabric.create("Blocker").task_id, fabric.create("Waits").task_id) for _ in range(20)]
        ready = multiprocessing.get_context("fork").Barrier(2)

        def act(number: int) -> None:
            with open_fabric(quick, actor="pm") as mine:
                for blocker, waiting in pairs:
                    ready.wait(60)
                    if number:
                        mine.dep_add(waiting, blocker)
                    else:
                        mine.cancel(blocker)

        together(2, act)

        with open_fabric(quick) as fabric:
            for blocker, waiting in pairs:
                task = fabric.get(waiting)
                assert task.status == "blocked"
                assert task.blocked is not None
                assert blocker in task.blocked.reason
        settled(quick)

    def test_a_heartbeat_and_a_recovery_at_the_end_of_a_lease_agree_on_who_was_first(self, quick: Path) -> None:
        clock = SharedClock()
        with open_fabric(quick, actor="pm", clock=clock) as fabric:
            runs = [fabric.claim(fabric.create("Work").task_id, agent="ada", ttl=60) for _ in range(20)]
            clock.put_forward(61)
        ready = multiprocessing.get_context("fork").Barrier(3)

        def act(number: int) -> list[str]:
            outcomes = []
            with open_fabric(quick, clock=clock) as mine:
                for run in runs:
                    ready.wait(60)
                    if number:
                        outcomes.append(",".join(one.task_id for one in mine.recover()))
                    else:
                        outcomes.append(outcome(mine.heartbeat, run.task_id, run=run.run_id, ttl=600))
            return outcomes

        beats, *recovered = together(3, act)

        lost = [task_id for some in recovered for ids in some for task_id in ids.split(",") if task_id]
        assert len(lost) == len(set(lost)), "a run is recovered once"
        with open_fabric(quick, clock=clock) as fabric:
            for run, beat in zip(runs, beats, strict=True):
                status = fabric.get(run.task_id).status
                assert (beat, status) in {("ok", "in-progress"), ("stale_lease", "ready")}
                assert (run.task_id in lost) == (status == "ready")
        settled(quick)
