"""Random histories as data: a step is the name of an operation and two small numbers that choose what it is about.

The same steps can be played on any fabric, and shrink well. Refusals are outcomes like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from aof.api.fabric import Fabric
from aof.errors import AofError
from aof.testing import FakeClock

Step = tuple[str, int, int]
AGENTS = ("ada", "bob", "cem")
RESOURCES = (None, None, "gpu", "lab", "vault")
SLOTS = {"gpu": 2, "vault": 0}
SPANS = (1, 30, 61, 301, 3_600, 90_000)


class Player:
    """Plays steps on a fabric. Tasks are chosen among those that it has created, runs among all that there were."""

    def __init__(self, fabric: Fabric, clock: FakeClock) -> None:
        self.fabric = fabric
        self.clock = clock
        self.ids: list[str] = []
        self.claims: list[tuple[str, str]] = []

    def play(self, step: Step) -> Any:
        """Carry out a step; what came of it, in plain values."""
        name, first, second = step
        try:
            answer = OPERATIONS[name](self, first, second)
        except AofError as error:
            return [error.code, error.message, error.hint]
        return msgspec.to_builtins(answer)

    def task(self, number: int) -> str:
        """One of the tasks, or one that does not exist."""
        return self.ids[number % len(self.ids)] if self.ids else "TASK-2026-01-05-999"

    def worked(self, number: int) -> str:
        """One of the tasks that were claimed last."""
        recent = self.claims[-4:]
        return recent[number % len(recent)][0] if recent else self.task(number)

    def by(self, task_id: str, number: int) -> dict[str, Any]:
        """Who writes to a run: mostly the last one of the task, sometimes the first one, sometimes only a name."""
        runs = [run for task, run in self.claims if task == task_id]
        if not runs or number == 9:
            return {"agent": AGENTS[number % 3]}
        return {"run": runs[-1] if number < 8 else runs[0]}

    def work(self, operation: Callable[..., Any], first: int, second: int, **given: Any) -> Any:
        """Write to a run."""
        task_id = self.worked(first)
        return operation(task_id, **self.by(task_id, second), **given)

    def claimed(self, task_id: str | None, agent: str, worker: str) -> Any:
        """Claim, and remember the run."""
        claimed = self.fabric.claim(task_id, agent=agent, worker=worker)
        self.claims.append((claimed.task_id, claimed.run_id))
        return claimed


def _create(p: Player, first: int, second: int) -> Any:
    metadata: dict[str, Any] = {}
    if first % 4 == 1:
        metadata["waitForChildren"] = True
    if first % 9 == 8:
        metadata["draft"] = True
    made = p.fabric.create(
        f"Number {len(p.ids)}",
        brief="Line one.\n\n## Work Log\n" if first % 3 else "",
        agent=AGENTS[second % 3] if second > 6 else None,
        depends_on=[p.task(first)] if p.ids and second % 3 == 0 else (),
        parent_id=p.task(second) if p.ids and first % 3 == 0 else None,
        priority=("low", "normal", "high", "critical")[second % 4],
        tags=["x", "y z"][: second % 3],
        resource=RESOURCES[(first + second) % 5],
        metadata=metadata,
        max_attempts=2 if second % 2 else None,
        backlog=first == 7,
        review=second % 2 == 0,
        key=f"key {second}" if first == 6 else None,
    )
    if made.task_id not in p.ids:
        p.ids.append(made.task_id)
    return made


def _edit(p: Player, first: int, second: int) -> Any:
    changes: list[dict[str, Any]] = [
        {"title": "Ünders"},
        {"metadata": {"draft": True}},
        {"metadata": {}},
        {"metadata": {"waitForChildren": True}},
        {"priority": "critical"},
        {"routing": {"agent": "bob", "tags": ["late"]}},
        {"visibility": "hidden"},
        {"description": "Another text.\n"},
        {"resource": "gpu"},
        {"resource": None},
    ]
    return p.fabric.edit(p.task(first), **changes[second])


OPERATIONS: dict[str, Callable[[Player, int, int], Any]] = {
    "create": _create,
    "claim": lambda p, a, b: p.claimed(p.task(a), AGENTS[b % 3], "process" if b == 0 else "pull"),
    "claim next": lambda p, a, b: p.claimed(None, AGENTS[b % 3], "pull"),
    "beat": lambda p, a, b: p.work(p.fabric.heartbeat, a, b, ttl=600 if b == 1 else None),
    "progress": lambda p, a, b: p.work(p.fabric.progress, a, b, text="going on", percent=b * 10, note="seen"),
    "release": lambda p, a, b: p.work(p.fabric.release, a, b),
    "complete": lambda p, a, b: p.work(
        p.fabric.complete, a, b, outcome=(None, "needs_review", "blocked", "partial", None)[b % 5],
        blockers=["the wind"] if b % 5 == 2 else (), summary="what was done",
    ),
    "fail": lambda p, a, b: p.work(p.fabric.fail, a, b, message="no", retryable=b % 4 != 3),
    "approve": lambda p, a, b: p.fabric.approve(p.worked(a)),
    "reject": lambda p, a, b: p.fabric.reject(p.worked(a), blockers=["not so"]),
    "cancel": lambda p, a, b: p.fabric.cancel(p.task(a)),
    "settle": lambda p, a, b: p.fabric.settle(p.task(a)),
    "block": lambda p, a, b: p.fabric.block(p.task(a), reason="in the way", kind=("blocked", "waiting_input")[b % 2]),
    "unblock": lambda p, a, b: p.fabric.unblock(p.task(a)),
    "pause": lambda p, a, b: p.fabric.pause(p.task(a)),
    "resume": lambda p, a, b: p.fabric.resume(p.task(a)),
    "retry": lambda p, a, b: p.fabric.retry(p.task(a), reason="once more"),
    "archive": lambda p, a, b: p.fabric.archive(p.task(a)),
    "depend": lambda p, a, b: p.fabric.dep_add(p.task(a), p.task(b)),
    "undepend": lambda p, a, b: p.fabric.dep_remove(p.task(a), p.task(b)),
    "edit": _edit,
    "body": lambda p, a, b: p.work(p.fabric.update, a, b, body=f"Text {b}\n"),
    "finish": lambda p, a, b: p.fabric.complete(p.task(a), actor=AGENTS[b % 3]),
    "recover": lambda p, a, b: p.fabric.recover(),
    "later": lambda p, a, b: p.clock.sleep(SPANS[b % len(SPANS)]),
}  # fmt: skip


def steps(least: int = 1, most: int = 40) -> st.SearchStrategy[list[Step]]:
    """Histories, with enough tasks in them that something happens."""
    often = ["create"] * 6 + ["claim", "claim next"] * 3 + ["complete", "fail", "release", "depend", "later"]
    one = st.tuples(st.sampled_from(often + sorted(OPERATIONS)), st.integers(0, 9), st.integers(0, 9))
    return st.lists(one, min_size=least, max_size=most)
