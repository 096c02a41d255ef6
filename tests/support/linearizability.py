"""Whether a concurrent history could have happened one operation after the other (the search of Wing and Gong).

Each process does one thing at a time; what it did is put somewhere between the moments of call and answer. A call
without an answer (its process was killed) may have had its effect at any later moment, or never.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


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
    """Whether there is an order in which every call could have got its answer."""
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
