"""How a workflow goes on by itself: which hops open, are skipped or fail because of what the others did.

`next_step` is asked until it has nothing more to say. Must not know events, leases or agents.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from aof.core.model.task import Task
from aof.core.model.workflow_state import ENDED, LOST, UNOPENED, HopState, Workflow
from aof.core.model.workflow_template import Hop
from aof.core.workflows.conditions import holds

State = Literal["running", "ready", "review", "blocked", "done", "failed"]


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


_COME_TO: tuple[tuple[str, State], ...] = (
    ("running", "running"),
    ("ready", "ready"),
    ("review", "review"),
    ("blocked", "blocked"),
)


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
