"""What a handoff does to its task: who owns it, who holds its lease, and what waits for the return.

Must not know how a handoff is answered, only what follows for the task.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aof.core.errors.base import AofError
from aof.core.errors.org import AtCapacity
from aof.core.model.commands import Claim, Decide
from aof.core.model.events import Draft
from aof.core.model.handoffs.record import Handoff
from aof.core.model.lifecycle import FINISHED, allows
from aof.core.model.org_chart import HUMAN
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.model.workflow import leases
from aof.core.tasks.attempts import close_run, failure
from aof.core.tasks.dependencies import dead_lettered
from aof.core.tasks.transitions import to_blocked, transition

HANDED_OVER = "handed_over"


def holds(task: Task | None, agent: str) -> bool:
    """Whether the agent runs the task, or a hop of it."""
    return task is not None and any(lease.agent == agent for lease in leases(task))


def waiting_task(records: Records, task: Task, sender: str, kind: str) -> Task | None:
    """The sender's own task that would wait for the return: the one above a subtask, else the task itself."""
    above = records.look(task.parent_id) if task.parent_id is not None else None
    if kind == "delegation" and above is not None and holds(above, sender):
        return above
    return task if holds(task, sender) else None


def made_to_wait(task: Task, handoff: Handoff, now: int) -> tuple[Draft, ...]:
    """The sender's run ends, and its task is blocked until the return; a group waits as one."""
    reason = wait_reason(handoff)
    closed = close_run(task, now, status="released", code="waits_for_handoff", message=reason)
    return (*closed, to_blocked(task, now, kind="waiting_input", reason=reason, by=handoff.from_agent))


def blocked(task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """The task cannot go on, where it can be blocked at all."""
    if not allows(task.status, "blocked"):
        return ()
    closed = close_run(task, now, status="cancelled", code="blocked", message=reason)
    return (*closed, to_blocked(task, now, kind="blocked", reason=reason, by=handoff.to_agent))


def given_up(records: Records, task: Task, handoff: Handoff, reason: str, now: int) -> tuple[Draft, ...]:
    """A delegated subtask whose result did not come has failed; work on the sender's own task goes on."""
    subtask = handoff.type == "delegation" and task.parent_id is not None and not holds(task, handoff.from_agent)
    if not subtask or task.gated or not allows(task.status, "deadletter"):
        return ()
    what: dict[str, Any] = {"code": "handoff_timeout", "message": reason, "cause": "timed_out"}
    closed = close_run(task, now, status="failed", **what)
    return (*closed, *dead_lettered(records, task, now, reason=reason, error=failure(task, now, **what)))


def wait_reason(handoff: Handoff) -> str:
    """Why the sender's task is blocked; by the ID in it the block is recognised when the return comes."""
    if handoff.broadcast_group_id is not None:
        return f"waits for the returns of broadcast {handoff.waiting_for}"
    return f"waits for the return of handoff {handoff.waiting_for} from {handoff.to_agent}"


def woken(records: Records, handoff: Handoff) -> tuple[Draft, ...]:
    """The sender's task goes on, and is the sender's to take; one that is blocked for another reason stays so."""
    if handoff.waiting_task_id is None or handoff.waiting_for is None:
        return ()
    task = records.look(handoff.waiting_task_id)
    if task is None or task.blocked is None or handoff.waiting_for not in task.blocked.reason:
        return ()
    mark = changed(task, routing=_routed(task, handoff.from_agent))
    return (*mark, transition(task, "ready", reason=f"handoff {handoff.id} is over"))


def changed(task: Task, *, owner: str | None = None, routing: dict[str, Any] | None = None) -> tuple[Draft, ...]:
    """The event that gives the task another owner or another agent."""
    changes: dict[str, Any] = {}
    if owner is not None and owner != task.owner:
        changes["owner"] = owner
    if routing is not None and routing != msgspec.to_builtins(task.routing):
        changes["routing"] = routing
    if not changes:
        return ()
    payload = {"changes": changes, "fields": sorted(changes)}
    return (Draft(type="task.updated", task_id=task.id, payload=payload),)


def _routed(task: Task, agent: str) -> dict[str, Any]:
    """The routing with this agent; where the task is in no one's hands but a person's, it names nobody."""
    given: dict[str, Any] = msgspec.to_builtins(task.routing)
    return {name: value for name, value in given.items() if name != "agent"} | (
        {} if agent == HUMAN else {"agent": agent}
    )


def claiming(task: Task, receiver: str, secret_digest: str | None, *, keep: bool) -> Claim:
    """The claim by which a receiver begins to run the task."""
    return Claim(actor=receiver, agent=receiver, task_id=task.id, secret_digest=secret_digest, keep=keep)


def taken(  # noqa: PLR0917 - all that a claim needs
    records: Records, task: Task, handoff: Handoff, now: int, decide: Decide, claim: Claim | None
) -> Verdict:
    """What acceptance does to the task, by the handoff's type; without a claim it waits to be begun."""
    receiver = handoff.to_agent
    if handoff.type == "escalation":
        return Decision(drafts=changed(task, owner=receiver))
    if handoff.type == "delegation" and not holds(task, handoff.from_agent) and not task.gated:
        return Decision(drafts=changed(task, routing=_routed(task, receiver)))
    if handoff.type == "sequential":
        return _moved(records, task, receiver, now, decide, claim)
    return Decision()


def _moved(  # noqa: PLR0917 - as above
    records: Records, task: Task, receiver: str, now: int, decide: Decide, claim: Claim | None
) -> Verdict:
    """Responsibility moves whole: owner, routing, and the lease under a new epoch where the task can be run."""
    if task.gated or task.status in ("blocked", "backlog", *FINISHED) or receiver == HUMAN:
        return Decision(drafts=changed(task, owner=receiver, routing=None if task.gated else _routed(task, receiver)))
    drafts = (*changed(task, owner=receiver, routing=_routed(task, receiver)),)
    if task.status != "ready":
        closed = close_run(task, now, status="released", code=HANDED_OVER)
        drafts = (*closed, *drafts, transition(task, "ready", reason="handed over"))
    if claim is None:
        return Decision(drafts=drafts)
    routing = msgspec.structs.replace(task.routing, agent=receiver)
    free = msgspec.structs.replace(task, status="ready", lease=None, routing=routing, owner=receiver, handoffs=())
    loaded = msgspec.structs.replace(records, tasks=records.tasks | {task.id: free})
    verdict = decide(loaded, claim, now)
    if isinstance(verdict, AtCapacity):
        return verdict
    if isinstance(verdict, AofError):  # it is the receiver's, and runs as soon as whatever it waits for is there
        return Decision(drafts=drafts)
    return msgspec.structs.replace(verdict, drafts=(*drafts, *verdict.drafts))


def given_back(task: Task, handoff: Handoff) -> tuple[Draft, ...]:
    """With the answer to an escalation, the task is again the sender's."""
    return changed(task, owner=handoff.from_agent) if handoff.type == "escalation" else ()
