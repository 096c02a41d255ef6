"""Real processes that want the same thing at the same moment: exactly one gets it, and nothing is lost.

Each process opens the data directory for itself, as commands and agents do.
"""

from __future__ import annotations

import json
import multiprocessing
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from aof.errors import AlreadyClaimed, CancelRequested, KeyConflict, NothingReady
from aof.service.bootstrap import open_fabric
from aof.store.files.locks import boot_id
from aof.store.lists import Query
from aof.testing import FakeClock
from tests.support.invariants import check_invariants
from tests.support.processes import outcome, together
from tests.support.requirements import requirement
from tests.support.room import SameMoment

NOON = SameMoment(FakeClock("2026-03-02T12:00:00Z"))


def settled(root: Path) -> None:
    """Everything that must hold of a data directory holds."""
    check_invariants(root, boot=boot_id())


class TestClaims:
    """One winner."""

    @requirement("task.control.start")
    def test_of_fifty_processes_that_claim_one_task_one_wins_and_the_others_learn_its_name(self, root: Path) -> None:
        with open_fabric(root, actor="pm") as fabric:
            task_id = fabric.create("Wanted by all").task_id

        def claim(number: int) -> tuple[str, str, str]:
            with open_fabric(root) as mine:
                try:
                    return "won", mine.claim(task_id, agent=f"agent-{number}").run_id, f"agent-{number}"
                except AlreadyClaimed as refusal:
                    return refusal.code, refusal.details["run_id"], refusal.message.split()[-1]

        answers = together(50, claim)

        assert Counter(answer[0] for answer in answers) == {"won": 1, "already_claimed": 49}
        assert len({answer[1:] for answer in answers}) == 1, "all name the same run and the same winner"
        run_id, winner = answers[0][1:]
        with open_fabric(root) as fabric:
            lease = fabric.get(task_id).lease
            assert lease is not None
            assert (lease.agent, lease.run_id, lease.epoch) == (winner, run_id, 1)
            runs = [(run.run_id, run.agent_id, run.attempt) for run in fabric.store.attempts(task_id)]
            assert runs == [(run_id, winner, 1)]
            started = [event for event in fabric.events(task_id=task_id) if event.type == "task.attempt.started"]
            assert [(event.run_id, event.payload["agent"]) for event in started] == [(run_id, winner)]
            assert started[0].commit == (2, 2), "status and run are one commit"
        settled(root)

    @requirement("aof1.artifacts.run-json")
    def test_taking_the_lease_writes_the_file_of_the_run_and_only_the_winners(self, root: Path) -> None:
        with open_fabric(root, actor="pm", clock=NOON) as fabric:
            alone, wanted = fabric.create("One").task_id, fabric.create("Two").task_id
            fabric.claim(alone, agent="swe-backend")

        def claim(number: int) -> str:
            with open_fabric(root, clock=NOON) as mine:
                return outcome(mine.claim, wanted, agent=f"agent-{number}")

        winner = f"agent-{together(50, claim).index('ok')}"

        assert {path.relative_to(root / "runs") for path in (root / "runs").rglob("run.json")} == {
            Path(alone, "run.json"),
            Path(wanted, "run.json"),
        }
        for task_id, agent in ((alone, "swe-backend"), (wanted, winner)):
            run = json.loads((root / "runs" / task_id / "run.json").read_text())
            assert (run["taskId"], run["agentId"], run["status"]) == (task_id, agent, "running")
            assert run["startedAt"] == "2026-03-02T12:00:00.000Z"
            assert run["metadata"] == {}
            assert run["artifactPaths"].keys() == {"inputs", "work", "output"}

    @pytest.mark.parametrize("rounds", [10, pytest.param(300, marks=pytest.mark.full)])
    def test_sixteen_processes_race_for_one_task_again_and_again(self, quick: Path, rounds: int) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            ids = [fabric.create(f"Number {number}").task_id for number in range(rounds)]
        ready = multiprocessing.get_context("fork").Barrier(16)

        def claim(number: int) -> list[str]:
            outcomes = []
            with open_fabric(quick) as mine:
                for task_id in ids:
                    ready.wait(60)
                    try:
                        mine.claim(task_id, agent=f"agent-{number}")
                    except AlreadyClaimed as refusal:
                        outcomes.append(str(refusal.details["holder"]))
                    else:
                        outcomes.append("mine")
            return outcomes

        answers = together(16, claim)

        for answer in zip(*answers, strict=True):
            assert answer.count("mine") == 1
            winner = f"agent-{answer.index('mine')}"
            assert set(answer) == {"mine", winner}, "every loser is told who has won"
        settled(quick)

    @pytest.mark.parametrize("count", [200, pytest.param(3_000, marks=pytest.mark.full)])
    def test_sixteen_processes_take_tasks_until_none_is_left_and_no_task_is_taken_twice(
        self, quick: Path, count: int
    ) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            ids = [fabric.create(f"Number {number}").task_id for number in range(count)]

        def take(number: int) -> list[str]:
            taken = []
            with open_fabric(quick) as mine:
                while True:
                    try:
                        taken.append(mine.claim(agent=f"agent-{number}").task_id)
                    except NothingReady:
                        return taken

        taken = together(16, take)

        assert sorted(task_id for some in taken for task_id in some) == sorted(ids)
        with open_fabric(quick) as fabric:
            holders = {task.id: task.lease.agent for task in fabric.store.find(Query()).tasks if task.lease}
        assert holders == {task_id: f"agent-{number}" for number, some in enumerate(taken) for task_id in some}
        settled(quick)

    def test_processes_that_share_nothing_but_the_directory_race_as_well(self, root: Path) -> None:
        with open_fabric(root, actor="pm") as fabric:
            task_id = fabric.create("Wanted").task_id

        answers = together(3, partial(claimed, str(root), task_id), method="spawn")

        assert sorted(answers) == ["already_claimed", "already_claimed", "ok"]
        settled(root)


def claimed(root: str, task_id: str, number: int) -> str:
    """A claim that can be sent to a process that was not forked."""
    with open_fabric(root) as mine:
        return outcome(mine.claim, task_id, agent=f"agent-{number}")


class TestKeys:
    """One task for a key."""

    @requirement("task.control.idempotency-key")
    def test_twenty_processes_with_one_key_make_one_task(self, root: Path) -> None:
        def create(number: int) -> str:
            with open_fabric(root, actor=f"agent-{number}") as mine:
                return mine.create("Nightly build", brief="Build it.", key="night-1").task_id

        (task_id,) = set(together(20, create))

        def log() -> list[tuple[str, str]]:
            with open_fabric(root) as fabric:
                return [(event.type, event.task_id) for event in fabric.events()]

        before = log()
        assert [task for kind, task in before if kind == "task.created"] == [task_id]
        with open_fabric(root, actor="pm") as restarted:
            assert restarted.create("Nightly build", brief="Build it.", key="night-1").task_id == task_id
        (root / "index.sqlite").unlink()
        with open_fabric(root, actor="pm") as restarted:
            assert restarted.create("Nightly build", brief="Build it.", key="night-1").task_id == task_id
            with pytest.raises(KeyConflict):
                restarted.create("Another title", brief="Build it.", key="night-1")
            assert restarted.list().total == 1
        assert log() == before
        settled(root)

    def test_one_key_with_different_contents_makes_one_task_and_conflicts(self, root: Path) -> None:
        def create(number: int) -> str:
            with open_fabric(root, actor="pm") as mine:
                return outcome(mine.create, f"Title {number}", key="one")

        assert Counter(together(8, create)) == {"ok": 1, "key_conflict": 7}
        settled(root)

    def test_eleven_hundred_tasks_of_one_day_from_four_processes_have_numbers_of_their_own(self, quick: Path) -> None:
        def create(number: int) -> list[str]:
            with open_fabric(quick, actor=f"agent-{number}", clock=NOON) as mine:
                return [mine.create(f"Number {turn}").task_id for turn in range(275)]

        made = [task_id for some in together(4, create) for task_id in some]

        numbers = sorted(int(task_id.rpartition("-")[2]) for task_id in made)
        assert len(set(numbers)) == 1_100
        assert numbers[-1] <= 1_100 + 4 * 4  # what each process may have taken ahead of its need
        assert {task_id.rpartition("-")[0] for task_id in made} == {"TASK-2026-03-02"}
        with open_fabric(quick) as fabric:
            listed = [task.id for task in fabric.store.find(Query()).tasks]
        assert [int(task_id.rpartition("-")[2]) for task_id in listed] == numbers
        settled(quick)


class TestFamilies:
    """A cancellation and new children of what it cancels."""

    def test_nothing_unfinished_is_left_below_a_parent_that_is_cancelled_while_children_are_added(
        self, quick: Path
    ) -> None:
        with open_fabric(quick, actor="pm") as fabric:
            made = [fabric.create("Top").task_id]
            for _ in range(7):
                made.append(fabric.create("Below", parent_id=made[-1]).task_id)

        def work(number: int) -> int:
            added = 0
            with open_fabric(quick, actor=f"agent-{number}") as mine:
                if number == 0:
                    while len(mine.list(limit=None).tasks) < len(made) + 10:
                        mine.create("Filler")
                    mine.cancel(made[0])
                    return 0
                for turn in range(200):
                    try:
                        mine.create("Late", parent_id=made[(turn + number) % len(made)])
                    except CancelRequested:
                        return added
                    added += 1
            return added

        added = sum(together(4, work))

        with open_fabric(quick) as fabric:
            found = {task.id: task for task in fabric.tasks(limit=None)}
        below = [task for task in found.values() if task.parent_id is not None or task.id == made[0]]
        assert len(below) == len(made) + added
        assert {task.status for task in below} == {"cancelled"}
        settled(quick)
