"""What the gates of a session make of a decision: an action waits for a person, or is left to one.

Completed work stays in review instead of being accepted by itself; whatever else a gate covers is refused to everybody
but a person. A task in a workflow has gates of its own. Must not know where the gates are written down.
"""

from __future__ import annotations

import msgspec

from aof.core.errors.base import AofError, Call
from aof.core.errors.charter import ApprovalRequired
from aof.core.model import commands as c
from aof.core.model.events import Draft
from aof.core.model.gate import Gate, gate_for
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Records, Verdict
from aof.core.model.task import Task
from aof.core.org.rights import is_person

_ACTIONS: dict[type[c.OnTask], str] = {c.CancelTask: "cancel", c.RetryTask: "retry", c.ArchiveTask: "archive"}
_DOES = {"complete": "accept", "cancel": "cancel", "retry": "retry", "archive": "archive"}


def held(records: Records, command: c.OnTask, verdict: Verdict) -> Verdict:
    """The decision as far as the gates let it pass."""
    if isinstance(verdict, AofError) or not verdict.drafts or _by_a_person(records.policy, command):
        return verdict
    if (refusal := _left_to_a_person(records, command)) is not None:
        return refusal
    kept: list[Draft] = []
    for draft in verdict.drafts:
        if _accepts(draft) and (gate := _gate_of(records, draft.task_id)) is not None:
            if any(one.task_id == draft.task_id and one.payload.get("to") == "review" for one in kept):
                continue  # it waits in review
            if gate.band == "approval":
                return _refused(records.task(draft.task_id), "complete")
        kept.append(draft)
    return verdict if len(kept) == len(verdict.drafts) else _but(verdict, kept)


def _but(verdict: Decision, kept: list[Draft]) -> Decision:
    return msgspec.structs.replace(verdict, drafts=tuple(kept))


def _by_a_person(policy: Policy, command: c.OnTask) -> bool:
    names = {command.acting, command.session or command.acting}
    return all(is_person(policy.org, name, policy.maintainers) for name in names)


def _left_to_a_person(records: Records, command: c.OnTask) -> ApprovalRequired | None:
    action = _ACTIONS.get(type(command))
    if isinstance(command, c.Update) and command.status == "cancelled":
        action = "cancel"
    task = records.look(command.task_id) if action is not None and command.outside else None
    if task is None or action is None:
        return None
    gate = gate_for(records.policy.gates, task, action)
    return _refused(task, action) if gate is not None and gate.band == "approval" else None


def _accepts(draft: Draft) -> bool:
    return draft.type == "task.transitioned" and draft.payload.get("to") == "done"


def _gate_of(records: Records, task_id: str) -> Gate | None:
    task = records.look(task_id)
    return None if task is None or task.gated else gate_for(records.policy.gates, task, "complete")


def _refused(task: Task, action: str) -> ApprovalRequired:
    return ApprovalRequired(
        f"a gate of the session charter lets only a person {_DOES[action]} {task.id}",
        "ask a maintainer; see the gates",
        Call("charter_show", {}),
        task_id=task.id,
        action=action,
    )


def waits_until(policy: Policy, task: Task) -> int | None:
    """Until when completed work waits in review before it counts as accepted, in milliseconds; None where it does not.

    Only work that nobody wanted reviewed is accepted by time alone.
    """
    gate = gate_for(policy.gates, task, "complete") if task.status == "review" and not task.gated else None
    if gate is None or gate.band != "delay" or task.metadata.get("reviewRequired") is not False:
        return None
    return gate.delay_seconds * 1000
