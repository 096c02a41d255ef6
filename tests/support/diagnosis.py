"""What doctor says of a directory, and that it heals it: without `--fix` nothing changes."""

from __future__ import annotations

from aof.kernel.model import Policy
from aof.maintenance.operations import Diagnosis, doctor
from aof.store.directory import Problem
from tests.support.desk import Desk
from tests.support.invariants import open_store

WAITING, RUNNING, DONE, LAID_OUT, GONE = (f"TASK-2026-03-02-00{number}" for number in range(1, 6))


def diagnosed(desk: Desk, *, fix: bool = False) -> Diagnosis:
    """What doctor says, also where the directory cannot be opened otherwise."""
    desk.store.close()
    store = open_store(desk.root, desk.clock, doctor=True)
    try:
        return doctor(store, desk.clock, Policy(), fix=fix)
    finally:
        store.close()


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return sorted({problem.code for problem in problems})


def heals(desk: Desk, *expected: str) -> Diagnosis:
    """Doctor tells the problems, changes nothing, and heals them when asked."""
    before = desk.contents()
    told = diagnosed(desk)
    assert (told.ok, codes(told.problems)) == (False, sorted(expected))
    assert all(problem.detail and problem.fix and problem.path for problem in told.problems)
    assert desk.contents() == before, "without --fix nothing changes"
    healed = diagnosed(desk, fix=True)
    assert (healed.ok, healed.problems) == (True, ())
    assert codes(healed.healed) == sorted(expected)
    assert diagnosed(desk).ok
    return healed
