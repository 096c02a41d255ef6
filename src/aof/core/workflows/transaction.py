"""One commit's way through a workflow: each step is an event, and changes what the next one is decided on.

`next_step` says how a workflow goes on by itself: which hops open, are skipped or fail because of what the others did.
It is asked until it has nothing more to say. Must not know which command is carried out.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from aof.core.evolve.workflow import STEPS, apply
from aof.core.model.events import Draft
from aof.core.model.ids import OURSELVES
from aof.core.model.lifecycle import TRANSITIONS
from aof.core.model.records import Decision, Records
from aof.core.model.run import Heartbeat
from aof.core.model.task import Task
from aof.core.model.times import iso
from aof.core.model.workflow import ENDED, LOST, UNOPENED, Hop, HopState, Workflow, workflow_of
from aof.core.tasks import dependencies
from aof.core.tasks.attempts import close_hops, failure
from aof.core.tasks.transitions import to_blocked, transition
from aof.core.workflows.conditions import holds

State = Literal["running", "ready", "review", "blocked", "done", "failed"]
_COME_TO: tuple[tuple[str, State], ...] = (
    ("running", "running"),
    ("ready", "ready"),
    ("review", "review"),
    ("blocked", "blocked"),
)
_STATUS_OF: Final = {
    "running": "in-progress",
    "ready": "ready",
    "review": "review",
    "blocked": "blocked",
    "done": "done",
    "failed": "deadletter",
}
_LAST: Final = ("blocked", "backlog", "done", "cancelled", "deadletter")


class HopStep(msgspec.Struct, frozen=True):
    """One hop takes one step, and why."""

    hop: str
    kind: Literal["opened", "skipped", "failed"]
    reason: str
    superseded: bool = False


def next_step(workflow: Workflow, task: Task) -> HopStep | None:
    """What follows from the state of the hops; None when nothing does."""
    for hop in workflow.template.hops:
        state = workflow.hop(hop.id)
        if state.status in UNOPENED and (step := _joined(workflow, task, hop)):
            return step
    return next((step for state in workflow.hops if (step := _superseded(workflow, state))), None)


def _joined(workflow: Workflow, task: Task, hop: Hop) -> HopStep | None:
    """Whether the hops before this one let it open. A skipped hop holds up no other."""
    before = [workflow.hop(name) for name in hop.depends_on]
    lost = [state for state in before if state.status in LOST]
    over = all(state.status in ENDED for state in before)
    if hop.join_type == "any":
        opens = not before or any(state.status == "done" for state in before) or (over and len(lost) < len(before))
        fails = bool(before) and over and not opens
    else:
        opens = all(state.status in ("done", "skipped") for state in before)
        fails = bool(lost)
    if fails:
        return HopStep(hop.id, "failed", f"{lost[0].id} {lost[0].status.replace('_', ' ')}")
    if not opens:
        return None
    if hop.condition is not None and not holds(hop.condition, facts(workflow, task)):
        return HopStep(hop.id, "skipped", "its condition does not hold")
    return HopStep(hop.id, "opened", "what it waits for is over" if before else "it is the first")


def _superseded(workflow: Workflow, state: HopState) -> HopStep | None:
    """An idle hop is not needed once everything after it has gone on without it."""
    after = workflow.template.dependents[state.id]
    if state.status in ENDED or state.lease is not None or not after:
        return None
    if any(workflow.hop(name).status in UNOPENED for name in after):
        return None
    return HopStep(state.id, "skipped", "nothing waits for it any more", superseded=True)


def state_of(workflow: Workflow) -> State:
    """What all the hops together come to."""
    statuses = set(workflow.statuses().values())
    for status, state in _COME_TO:
        if status in statuses:
            return state
    ends = (workflow.hop(hop.id) for hop in workflow.template.hops if not workflow.template.dependents[hop.id])
    return "failed" if any(end.status in LOST for end in ends) else "done"


def status_of(state: State) -> str:
    """The status of a task whose hops together come to this."""
    return _STATUS_OF[state]


def facts(workflow: Workflow, task: Task) -> dict[str, Any]:
    """What a condition may ask for."""
    fields: dict[str, Any] = msgspec.to_builtins(task)
    return fields | {"hops": {hop.id: msgspec.to_builtins(hop) for hop in workflow.hops}}


def reset_by(workflow: Workflow, targets: tuple[str, ...]) -> tuple[str, ...]:
    """The hops that begin again with the targets: all that come after, and what was skipped for their sake."""
    again = set(targets) | workflow.template.after(targets)
    while True:
        idle = {
            hop.id
            for hop in workflow.hops
            if hop.superseded and hop.id not in again and again & set(workflow.template.dependents[hop.id])
        }
        if not idle:
            return tuple(hop.id for hop in workflow.hops if hop.id in again)
        again |= idle | workflow.template.after(idle)


class Walk:
    """The workflow as it is after the steps so far, and the drafts of those steps."""

    def __init__(self, records: Records, task: Task, now: int, workflow: Workflow | None = None) -> None:
        self.records = records
        self.task = task
        self.now = now
        self._at = iso(now)
        self.workflow = workflow or workflow_of(task)
        self.drafts: list[Draft] = []
        self.status: str = task.status
        self.by = OURSELVES

    def add(self, kind: str, hop: str, run: str | None = None, /, **payload: Any) -> None:
        """One event about a hop."""
        whole = {"hop": hop} | {name: value for name, value in payload.items() if value is not None}
        self.drafts.append(Draft(type=kind, task_id=self.task.id, run_id=run, payload=whole))
        self.workflow = apply(self.workflow, kind, whole, run, self._at)

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
        target = status_of(state)
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
