"""What a task declares that must be there before it is done, and what of it is still open.

Only what the task itself declares counts: acceptance criteria, and under `constraints.output` required artifacts,
evidence and delivery. Must not know how a task comes to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aof.core.errors.base import AofError, Call
from aof.core.errors.tasks import NotReconciled
from aof.core.evolve.task import name_of, standing
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.validation.output import demanded

_SHOWN: Final = 5


def declares(task: Task) -> bool:
    """Whether there is anything to look at."""
    return bool(task.acceptance or (task.constraints and demanded(task.constraints)))


def required_files(task: Task | None) -> frozenset[tuple[str, str]]:
    """The files that must be among the task's own."""
    paths = demanded(task.constraints).get("artifacts", ()) if task is not None and task.constraints else ()
    return frozenset((task.id, path) for path in paths) if task is not None else frozenset()


def open_points(
    records: Records,
    task: Task,
    *,
    reports: Sequence[Any] = (),
    tests: dict[str, int] | None = None,
    approved: bool = False,
) -> tuple[str, ...]:
    """What is open, once these reports count too. Who approves vouches for the criteria that nobody reported on."""
    if not declares(task):
        return ()
    bad = ("unmet",) if approved else ("unmet", "unknown")
    words = zip(task.acceptance, standing(task, reports), strict=True)
    found = [f"acceptance '{name_of(one)[:80]}' is {word}" for one, word in words if word in bad]
    needed = demanded(task.constraints)
    found += [
        f"artifact {path} is missing" for path in needed.get("artifacts", ()) if (task.id, path) in records.missing
    ]
    found += [f"evidence '{name}' is missing" for name in needed.get("evidence", ()) if not _shown(task, name, tests)]
    if needed.get("delivery") and task.delivery.get("state") != "delivered":
        found.append(f"delivery is {task.delivery.get('state', 'pending')}")
    return tuple(found)


def _shown(task: Task, name: str, tests: dict[str, int] | None) -> bool:
    """Tests count once some passed and none failed; anything else is linked as evidence under its name."""
    if name == "tests":
        counts = tests or task.validation.get("tests") or {}
        return bool(counts.get("passed")) and not counts.get("failed")
    return any((link.kind, link.target_id) == ("evidence", name) for link in task.links)


def listed(points: Sequence[str]) -> str:
    """Open points as one line."""
    more = len(points) - _SHOWN
    return "; ".join(points[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def not_reconciled(task: Task, points: Sequence[str]) -> AofError | None:
    """The refusal while something is open."""
    if not points:
        return None
    names = [name_of(one) for one in task.acceptance]
    more: dict[str, Any] = {"acceptance": names[:_SHOWN]} if names else {}
    return NotReconciled(
        f"{task.id} is not complete: {listed(points)}",
        "finish what is open and report it, or hand it over with outcome 'needs_review'",
        Call("complete", {"task_id": task.id} | more),
        open=list(points),
    )


def vouched(task: Task) -> dict[str, Any]:
    """What an approval says of the criteria that nobody reported on; nothing where there are none."""
    words = zip(task.acceptance, standing(task), strict=True)
    names = [name_of(one) for one, word in words if word == "unknown"]
    return {"acceptance": names} if names else {}
