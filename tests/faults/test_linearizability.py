"""What several processes see of a few tasks could have happened one operation after the other, kills included."""

from __future__ import annotations

import random
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, AofError
from aof.kernel.model import attempt_of, run_id
from aof.service.bootstrap import open_fabric
from tests.support.linearizability import Operation, linearizable
from tests.support.processes import Worker, moment

OPERATIONS = ["claim"] * 4 + ["heartbeat", "release", "complete", "cancel", "retry", "retry"]
Said = tuple[str, str, str, int, int, str | None]  # task, operation, agent, run, moment, answer


def ask(fabric: Fabric, name: str, task_id: str, agent: str, run_id: str) -> tuple[str, str]:
    """Carry out one operation; the answer as text, and the run that is known from then on."""
    operations: dict[str, Any] = {
        "claim": lambda: fabric.claim(task_id, agent=agent, ttl=3_600),
        "heartbeat": lambda: fabric.heartbeat(task_id, run=run_id),
        "release": lambda: fabric.release(task_id, run=run_id),
        "complete": lambda: fabric.complete(task_id, run=run_id),
        "cancel": lambda: fabric.cancel(task_id),
        "retry": lambda: fabric.retry(task_id, reason="once more"),
    }
    try:
        answer = operations[name]()
    except AlreadyClaimed as refusal:
        found = refusal.details["run_id"]
        return f"already_claimed by {refusal.details['holder']} in {attempt_of(found)}", found
    except AofError as error:
        return error.code, run_id
    return (f"run {attempt_of(answer.run_id)}", answer.run_id) if name == "claim" else ("ok", run_id)


def worker_on(root: Path, tasks: list[str], number: int, turns: int) -> Worker:
    """A process that does things at random and tells of each call and each answer."""

    def work(pipe: Connection) -> None:
        chance = random.Random(number)
        runs = {task_id: run_id(task_id, 0, "") for task_id in tasks}
        agent = f"agent-{number}"
        with open_fabric(root, actor="pm") as mine:
            pipe.send("ready")
            pipe.recv()
            for _ in range(turns):
                name, task_id = chance.choice(OPERATIONS), chance.choice(tasks)
                run = attempt_of(runs[task_id])
                pipe.send((task_id, name, agent, run, moment(), None))
                answer, runs[task_id] = ask(mine, name, task_id, agent, runs[task_id])
                pipe.send((task_id, name, agent, run, moment(), answer))

    return Worker(work)


def told_by(worker: Worker, process: int) -> dict[str, list[Operation]]:
    """Everything that a process has told until its end, by task."""
    told: dict[str, list[Operation]] = {}
    with suppress(EOFError, ConnectionResetError):
        while worker.pipe.poll(60):
            said: Said = worker.pipe.recv()
            task_id, name, agent, run, when, answer = said
            calls = told.setdefault(task_id, [])
            if answer is None:
                calls.append(Operation(process, name, agent, run, when, None, None))
            else:
                calls[-1] = calls[-1]._replace(answered=when, answer=answer)
    return told


@pytest.mark.parametrize("killed", [0, 3], ids=["all live", "some are killed"])
@pytest.mark.parametrize("rounds", [3, pytest.param(60, marks=pytest.mark.full)])
def test_concurrent_work_on_a_task_has_a_legal_order(quick: Path, rounds: int, killed: int) -> None:
    calls = unanswered = 0
    for turn in range(rounds):
        with open_fabric(quick, actor="pm") as fabric:
            tasks = [fabric.create(f"Number {number}", review=False).task_id for number in range(2)]
        chance = random.Random(turn)
        workers = [worker_on(quick, tasks, turn * 100 + number, 40) for number in range(5)]
        assert {worker.hear() for worker in workers} == {"ready"}
        for worker in workers:
            worker.say("go")
        for worker in workers[:killed]:
            workers[-1].pipe.poll(chance.uniform(0, 0.05))
            worker.kill()
        history: dict[str, list[Operation]] = {task_id: [] for task_id in tasks}
        for process, worker in enumerate(workers):
            for task_id, told in told_by(worker, process).items():
                history[task_id] += told
            worker.end()
        for task_id, told in history.items():
            assert linearizable(told), f"no order explains what was seen of {task_id}: {sorted(told)}"
            calls += len(told)
            unanswered += sum(call.answered is None for call in told)

    assert calls >= rounds * 80
    assert unanswered <= rounds * killed


class TestTheSearchItself:
    """It would notice."""

    @pytest.mark.parametrize(
        ("history", "legal"),
        [
            ([("a", "claim", 1, 1, 4, "run 1"), ("b", "claim", 1, 2, 3, "already_claimed by a in 1")], True),
            ([("a", "claim", 1, 3, 4, "run 1"), ("b", "claim", 1, 1, 2, "already_claimed by a in 1")], False),
            ([("a", "claim", 1, 1, 4, "run 1"), ("b", "claim", 1, 2, 3, "run 1")], False),
            ([("a", "claim", 1, 1, None, None), ("b", "claim", 1, 2, 3, "already_claimed by a in 1")], True),
            ([("a", "claim", 1, 1, None, None), ("b", "claim", 1, 2, 3, "run 1")], True),
            ([("a", "claim", 1, 4, None, None), ("b", "claim", 1, 2, 3, "already_claimed by a in 1")], False),
            (
                [
                    ("a", "claim", 1, 1, 2, "run 1"),
                    ("b", "cancel", 1, 3, 6, "ok"),
                    ("a", "complete", 1, 4, 5, "ok"),
                ],
                False,
            ),
            (
                [
                    ("a", "claim", 1, 1, 2, "run 1"),
                    ("b", "cancel", 1, 3, 6, "invalid_transition"),
                    ("a", "complete", 1, 4, 5, "ok"),
                ],
                True,
            ),
            (
                [
                    ("a", "claim", 1, 1, 2, "run 1"),
                    ("b", "cancel", 1, 3, 4, "ok"),
                    ("b", "retry", 1, 5, 6, "ok"),
                    ("b", "claim", 1, 7, 8, "run 2"),
                    ("a", "heartbeat", 1, 9, 10, "ok"),
                ],
                False,
            ),
        ],
    )
    def test_the_search_tells_legal_histories_from_others(
        self, history: list[tuple[str, str, int, int, int | None, str | None]], legal: object
    ) -> None:
        calls = [
            Operation(ord(agent), name, agent, run, called, answered, answer)
            for agent, name, run, called, answered, answer in history
        ]

        assert linearizable(calls) is legal
