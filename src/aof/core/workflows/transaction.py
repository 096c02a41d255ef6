"""One commit's way through a workflow: each step is an event, and changes what the next one is decided on.

Must not know which command is carried out.
"""

from __future__ import annotations

from typing import Any, Final

from aof.core.evolve.workflow import STEPS, apply
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import TRANSITIONS
from aof.core.model.records import Decision, Records
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow_state import LOST, HopState, Workflow, workflow_of
from aof.core.tasks import dependencies
from aof.core.tasks.attempts import close_hops, failure
from aof.core.tasks.transitions import to_blocked, transition
from aof.core.workflows.flow import next_step, state_of

_STATUS_OF: Final = {
    "running": "in-progress",
    "ready": "ready",
    "review": "review",
    "blocked": "blocked",
    "done": "done",
    "failed": "deadletter",
}


class Walk:
    """The workflow as it is after the steps so far, and the drafts of those steps."""

    def __init__(self, records: Records, task: Task, now: int, workflow: Workflow | None = None) -> None:
        self.records = records
        self.task = task
        self.now = now
        self.workflow = workflow or workflow_of(task)
        self.drafts: list[Draft] = []
        self.status: str = task.status
        self.by = OURSELVES

    def add(self, kind: str, hop: str, run: str | None = None, /, **payload: Any) -> None:
        """One event about a hop."""
        whole = {"hop": hop} | {name: value for name, value in payload.items() if value is not None}
        self.drafts.append(Draft(type=kind, task_id=self.task.id, run_id=run, payload=whole))
        self.workflow = apply(self.workflow, kind, whole, run, iso(self.now))

    def step(self, hop: str, what: str, status: str, run: str | None = None, /, **payload: Any) -> None:
        """A hop comes to a status."""
        self.add(f"{STEPS}{what}", hop, run, status=status, **payload)

    def end_run(self, hop: HopState, *, status: str, code: str, **more: Any) -> None:
        """Close a hop's run without a result."""
        for draft in close_hops((hop,), self.task, self.now, status=status, code=code, **more):
            payload = {name: value for name, value in draft.payload.items() if name != "hop"}
            self.add(draft.type, hop.id, draft.run_id, **payload)

    def settle(self) -> None:
        """Everything that follows by itself."""
        while (step := next_step(self.workflow, self.task)) is not None:
            status = "ready" if step.kind == "opened" else step.kind
            self.step(step.hop, step.kind, status, reason=step.reason, superseded=step.superseded or None)

    def finish(self, reason: str, *, agent: str | None = None, heartbeat: Heartbeat | None = None) -> Decision:
        """Let follow what follows, and bring the task to the status that its hops come to."""
        self.settle()
        state = state_of(self.workflow)
        if state in ("done", "failed"):
            closed_as = Draft(type="task.workflow.closed", task_id=self.task.id, payload={"state": state})
            self.drafts.append(closed_as)
        target = _STATUS_OF[state]
        if target != self.status:
            self._go(target, reason)
        return Decision(drafts=tuple(self.drafts), agent=agent, heartbeat=heartbeat)

    def _go(self, target: str, reason: str) -> None:
        """Over legal edges only; each is an event."""
        for following in path(self.status, target):
            self._move(following, reason, last=following == target)

    def _move(self, target: str, reason: str, *, last: bool) -> None:
        task, now, origin = self.task, self.now, self.status
        self.status = target
        if target == "blocked":
            held = [hop for hop in self.workflow.hops if hop.status == "blocked"]
            why = "; ".join(f"{hop.id}: {hop.reason}" for hop in held)
            by = held[0].agent or self.by
            self.drafts.append(to_blocked(task, now, kind="blocked", reason=why, by=by, origin=origin))
        elif target == "deadletter":
            error = self._error()
            self.drafts.append(transition(task, target, origin=origin, reason=error["code"], error=error))
            self.drafts += dependencies.cascade(self.records, (task.id,), target, now)
        elif target == "ready" and last:
            self.drafts.append(transition(task, target, origin=origin, reason=reason))
            if (dead := dependencies.dead_dependency(self.records, task.depends_on)) is not None:
                self.status = "blocked"
                self.drafts.append(dependencies.held_by(task, dead, now, origin=target))
        else:
            self.drafts.append(transition(task, target, origin=origin, reason=reason))

    def _error(self) -> dict[str, str]:
        """The first hop that failed by itself is the cause of all the others."""
        lost = sorted((hop for hop in self.workflow.hops if hop.status in LOST), key=lambda hop: hop.ended_at or "")
        own = [hop for hop in lost if not self._passed_on(hop)]
        first = (own or lost)[0]
        cause = "timed_out" if first.status == "timed_out" else "lost" if first.outcome == "lost" else "failed"
        error = failure(self.task, self.now, "hop_failed", f"hop '{first.id}': {first.reason}", cause)
        return error | ({"runId": first.run_id} if first.run_id else {})

    def _passed_on(self, hop: HopState) -> bool:
        return any(self.workflow.hop(name).status in LOST for name in self.workflow.template.by_id[hop.id].depends_on)


def path(origin: str, target: str) -> tuple[str, ...]:
    """The shortest way over edges of the status table; none leads out of what is done or cancelled but a retry's."""
    trails: list[tuple[str, ...]] = [(origin,)]
    for trail in trails:
        edges: tuple[str, ...] = TRANSITIONS[trail[-1]] or ("ready",)
        for following in sorted(edges, key=_LAST.__contains__):
            if following == target:
                return (*trail[1:], target)
            if following not in trail and following not in _LAST:
                trails.append((*trail, following))
    raise ValueError(f"no way leads from {origin} to {target}")  # the table has one for every pair that hops ask for


_LAST: Final = ("blocked", "backlog", "done", "cancelled", "deadletter")
