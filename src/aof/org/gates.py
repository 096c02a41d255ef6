"""The gates of the session charter: what they cover, and how far they let a decision pass."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from aof.errors import AofError, ApprovalRequired, Call
from aof.kernel import commands
from aof.kernel.commands import Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.model import Policy
from aof.org.model import Gate, enforced
from aof.org.rights import is_person
from aof.tasks.model import Task

_STRICTNESS: Final = {"approval": 2, "delay": 1, "auto": 0}
_ACTIONS: Final[dict[type[commands.OnTask], str]] = {
    commands.CancelTask: "cancel",
    commands.RetryTask: "retry",
    commands.ArchiveTask: "archive",
}
_VERBS: Final = {"complete": "accept", "cancel": "cancel", "retry": "retry", "archive": "archive"}


def gate_for(gates: Iterable[Gate], task: Task, action: str) -> Gate | None:
    """The strictest gate that such an action on this task meets; None where it needs nobody."""
    met = [gate for gate in gates if any(_covers(item, task, action) for item in gate.scope)]
    strictest = max(met, key=lambda gate: _STRICTNESS[gate.band], default=None)
    return None if strictest is None or strictest.band == "auto" else strictest


def selects(gates: Iterable[Gate], key: str) -> bool:
    """Whether any gate asks for this selector of a task."""
    found = (enforced(item) for gate in gates for item in gate.scope)
    return any(one is not None and any(name == key for name, _ in one[1]) for one in found)


def _covers(item: str, task: Task, action: str) -> bool:
    found = enforced(item)
    return found is not None and found[0] == action and all(_has(task, key, value) for key, value in found[1])


def _has(task: Task, key: str, value: str) -> bool:
    if key == "tag":
        return value in task.routing.tags
    values = {
        "risk": task.profile.get("risk") or task.metadata.get("risk"),
        "priority": task.priority,
        "agent": task.routing.agent,
        "team": task.routing.team,
    }
    return values[key] == value


def held_by_gates(records: Records, command: commands.OnTask, verdict: Verdict) -> Verdict:
    """The decision as far as the gates let it pass; what a person asks for passes."""
    if isinstance(verdict, AofError) or not verdict.drafts:
        return verdict
    policy, names = records.policy, {command.acting, command.session or command.acting}
    if all(is_person(policy.org, name, policy.maintainers) for name in names):
        return verdict
    if (refusal := _left_to_a_person(records, command)) is not None:
        return refusal
    kept: list[Draft] = []
    for draft in verdict.drafts:
        accepts = draft.type == "task.transitioned" and draft.payload.get("to") == "done"
        task = records.look(draft.task_id) if accepts else None
        gate = gate_for(policy.gates, task, "complete") if task is not None and not task.gated else None
        if task is not None and gate is not None:
            if any(one.task_id == task.id and one.payload.get("to") == "review" for one in kept):
                continue  # it waits in review
            if gate.band == "approval":
                return _approval_required(task, "complete")
        kept.append(draft)
    return verdict if len(kept) == len(verdict.drafts) else msgspec.structs.replace(verdict, drafts=tuple(kept))


def _left_to_a_person(records: Records, command: commands.OnTask) -> ApprovalRequired | None:
    action = _ACTIONS.get(type(command))
    if isinstance(command, commands.Update) and command.status == "cancelled":
        action = "cancel"
    task = records.look(command.task_id) if action is not None and command.outside else None
    if task is None or action is None:
        return None
    gate = gate_for(records.policy.gates, task, action)
    return _approval_required(task, action) if gate is not None and gate.band == "approval" else None


def _approval_required(task: Task, action: str) -> ApprovalRequired:
    return ApprovalRequired(
        f"a gate of the session charter lets only a person {_VERBS[action]} {task.id}",
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
