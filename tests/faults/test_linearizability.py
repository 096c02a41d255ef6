"""What several processes see of a few tasks could have happened one operation after the other, kills included."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aof.api.fabric import Fabric
from aof.errors import AlreadyClaimed, AofError
from aof.kernel.model import attempt_of, run_id
from aof.service.bootstrap import open_fabric
from tests.support.processes import Worker, moment


class State(NamedTuple):
    """One task, as far as the operations in question can tell."""

    status: str = "ready"
    runs: int = 0
    holder: str | None = None
    reported: int | None = None  # the last run whose report was taken: it may be sent again


class Operation(NamedTuple):
    """One call: what was asked by whom, when it was called and answered, and the answer (None: there was none)."""

    process: int
    name: str
    agent: str
    run: int
    called: int
    answered: int | None
    answer: str | None


Outcome = tuple[State, str]


def _claim(state: State, call: Operation) -> Outcome:
    if state.holder is not None:
        return state, f"already_claimed by {state.holder} in {state.runs}"
    if state.status != "ready":
        return state, "not_ready"
    return State("in-progress", state.runs + 1, call.agent, state.reported), f"run {state.runs + 1}"


def _by_holder(target: str | None) -> Callable[[State, Operation], Outcome]:
    """What only the current run may do."""

    def apply(state: State, call: Operation) -> Outcome:
        if target == "done" and call.run == state.runs == state.reported:  # the same report once more
            return state, "ok"
        if state.holder is None or call.run != state.runs:
            return state, "stale_lease"
        reported = state.runs if target == "done" else state.reported
        return (state if target is None else State(target, state.runs, None, reported)), "ok"

    return apply


def _unless(refused: str, target: str) -> Callable[[State, Operation], Outcome]:
    """What anybody may do, but not in one status."""

    def apply(state: State, call: Operation) -> Outcome:
        if state.status == refused:
            return state, "invalid_transition"
        return State(target, state.runs, None, state.reported), "ok"

    return apply


AFTER: dict[str, Callable[[State, Operation], Outcome]] = {
    "claim": _claim,
    "heartbeat": _by_holder(None),
    "release": _by_holder("ready"),
    "complete": _by_holder("done"),
    "cancel": _unless("done", "cancelled"),
    "retry": _unless("in-progress", "ready"),
}


def linearizable(history: list[Operation]) -> bool:
    """Whether there is an order in which every call could have got its answer (the search of Wing and Gong).

    Each process does one thing at a time; what it did is put somewhere between the moments of call and answer. A call
    without an answer (its process was killed) may have had its effect at any later moment, or never.
    """
    processes = sorted({call.process for call in history})
    lines = [
        sorted((call for call in history if call.process == who), key=lambda call: call.called) for who in processes
    ]
    start = (State(), (0,) * len(lines))
    seen = {start}
    stack = [start]
    while stack:
        state, done = stack.pop()
        waiting = [(who, lines[who][place]) for who, place in enumerate(done) if place < len(lines[who])]
        if all(call.answered is None for _, call in waiting):
            return True
        first_answer = min(call.answered for _, call in waiting if call.answered is not None)
        for who, call in waiting:
            if call.called > first_answer:
                continue
            moved = (*done[:who], done[who] + 1, *done[who + 1 :])
            following, answer = AFTER[call.name](state, call)
            if call.answer in (None, answer) and (following, moved) not in seen:
                seen.add((following, moved))
                stack.append((following, moved))
    return False


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
