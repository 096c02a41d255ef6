"""Whether a caller may give a command: by its name, its token, the org chart, and what gates protect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from aof.errors import (
    AgentInactive,
    AofError,
    ApprovalRequired,
    Call,
    EditWaits,
    NoRoute,
    NotAllowed,
    NotRouted,
    OwnWork,
    ReviewRequired,
    Unauthenticated,
)
from aof.kernel import commands
from aof.kernel.commands import Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.findings import suggestion
from aof.kernel.model import FINISHED, OURSELVES, Policy, is_task_id
from aof.org import rights
from aof.org.budgets import one_run_too_many
from aof.org.model import Agent, Gate, OrgChart, enforced
from aof.org.rights import (
    acting,
    delivered_by,
    entry_of,
    impersonation,
    is_person,
    leads,
    not_allowed,
    owns,
    right_for,
    takes_back,
    tries_again,
    unlisted,
)
from aof.org.routing import at_capacity, counted_agents, routing_refusal, work_of
from aof.runs.authentication import took_part
from aof.tasks import fields as tasks_fields
from aof.tasks.manual_edits import theirs
from aof.tasks.model import Routing, Task
from aof.tasks.rules import changed_fields
from aof.workflows.model import leases, read_fields, value_at

_STRICTNESS: Final = {"approval": 2, "delay": 1, "auto": 0}
_ACTIONS: Final[dict[type[commands.OnTask], str]] = {
    commands.CancelTask: "cancel",
    commands.RetryTask: "retry",
    commands.ArchiveTask: "archive",
}
_VERBS: Final = {"complete": "accept", "cancel": "cancel", "retry": "retry", "archive": "archive"}


def gate_for(gates: Iterable[Gate], task: Task, action: str) -> Gate | None:
    """The strictest gate that covers such an action on this task; None where none does."""
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
    """The decision after the gates: work that needs an approval is held back; what a person asks for passes."""
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
        task = records.find(draft.task_id) if accepts else None
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
    task = records.find(command.task_id) if action is not None and command.outside else None
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


_SHOWN: Final = 10  # names that a refusal offers
FIELDS: Final = tuple(row.key for row in tasks_fields.WHOLE if row.gated)
KEYS: Final = ("reviewRequired", "risk", "profile", "workflow", "maxAttempts", "delegationDepth")
_LEADING: Final[dict[type[commands.OnTask], str]] = {
    commands.Pause: "pausing it",
    commands.Resume: "resuming it",
    commands.ArchiveTask: "archiving it",
    commands.UnarchiveTask: "taking it out of the archive",
}


def caller_refused(records: Records, command: commands.OnTask) -> AofError | None:
    """Why the caller may not give the command; None when nothing about the caller forbids it."""
    policy = records.policy
    task = None if isinstance(command, commands.Create) else records.find(command.task_id)
    if policy.binds and command.outside:
        named = unlisted(policy, command.session, delivered_by(command), command.actor, command.agent)
        if refusal := impersonation(policy, task, command) or named:
            return refusal
    if task is None or isinstance(command, commands.OwnRule):
        return None
    if command.limited and (refusal := beyond_work(task, command) or _role_unproven(task, command)):
        return refusal
    proven = unproven_gate(records, task, command) if policy.require_secret else None
    return proven or gate_refusal(records, task, command)


def forbidden(records: Records, chart: OrgChart, command: commands.OnTask) -> AofError | None:
    """Why the chart does not allow the command; None when it does."""
    if isinstance(command, commands.Create):
        return unknown_names(chart, {"agent": command.assignee, "role": command.role, "team": command.team})
    if isinstance(
        command, commands.Expire | commands.Settle | commands.ImportEdit | commands.TimeOut | commands.Attach
    ):
        return None
    task = records.find(command.task_id)
    if isinstance(command, commands.Edit) and isinstance(given := command.changes.get("routing"), dict):
        unknown = unknown_names(chart, given)
        if unknown is not None:
            return unknown
    return not_allowed(records, chart, task, command) or _not_to_claim(records, chart, task, command)


def unknown_names(chart: OrgChart, routing: dict[str, Any]) -> NoRoute | None:
    """The refusal of a task for a name that the chart does not list: it would wait for ever."""
    known = {"agent": set(chart.by_id), "role": set(chart.holders), "team": set(chart.teams_by_id)}
    for what, names in known.items():
        name = routing.get(what)
        if isinstance(name, str) and name not in names:
            there = ", ".join(sorted(names)[:_SHOWN]) or "there is none"
            return NoRoute(
                f"the org chart has no {what} '{name[:80]}'",
                f"{suggestion(name[:80], names, f'use one of: {there}.')} See who there is",
                Call("org_show", {}),
                **{what: name[:80]},
            )
    return None


def _not_to_claim(records: Records, chart: OrgChart, task: Task | None, command: commands.OnTask) -> AofError | None:
    """The refusal of a claim, or of a command that begins with one."""
    if task is None or task.lease is not None:
        return None
    # Work in review that is sent back to be done by the caller itself begins a run like any claim.
    again = task.status == "review" and isinstance(command, commands.Update) and command.status == "in-progress"
    free = task.status == "ready" or (task.gated and task.status == "in-progress")
    if not (again or free):
        return None
    agent = entry_of(chart, acting(task, command), records.policy.maintainers)
    if agent is None or not (again or isinstance(command, commands.Complete) or right_for(task, command) == "take"):
        return None
    routing = task.routing
    if isinstance(command, commands.Claim) and command.steal:
        routing = msgspec.structs.replace(routing, agent=agent.id)
    refused = _not_for(chart, task, agent, routing) or one_run_too_many(agent, task)
    if refused is not None or isinstance(command, commands.Complete):
        return refused  # what is over at once takes nobody's capacity
    return at_capacity(chart, agent, {name: len(records.held[name]) for name in counted_agents(chart, agent)})


def _not_for(chart: OrgChart, task: Task, agent: Agent, routing: Routing) -> AofError | None:
    """Why the agent is not to take the task, whatever load it has: it is not active, or the task goes to others."""
    if not agent.active:
        return AgentInactive(
            f"{agent.id} is not active and takes no tasks",
            "set it active in the org chart, or let another agent take it",
            Call("org_show", {}),
            agent=agent.id,
        )
    # The hop itself says who may take it.
    why = None if task.gated else routing_refusal(chart, work_of(routing, task.profile), agent.id)
    if why is not None:
        return NotRouted(
            f"{agent.id} may not take {task.id}: {why}",
            "see who would get it",
            Call("org_route", {"task_id": task.id}),
            agent=agent.id,
        )
    return None


def gated_changes(policy: Policy, task: Task, changes: dict[str, Any]) -> tuple[str, ...]:
    """The names of all that gates read among these changes, each of which says what its field would be.

    Some fields count for every task. Others count where the conditions of the task's workflow, or the gates of the
    session charter, name them.
    """
    before: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(task))
    after = before | changes
    fields = (name for name in FIELDS if name in changes)
    keys = (f"metadata.{key}" for key in KEYS)
    asked = (path for path in sorted(read_fields(task)) if path.partition(".")[0] not in FIELDS)
    priority = ("priority",) if selects(policy.gates, "priority") else ()
    read = (path for path in (*keys, *asked, *priority) if value_at(path, before) != value_at(path, after))
    return tuple(dict.fromkeys((*fields, *(path.removeprefix("metadata.") for path in read))))


def waiting_edit(records: Records, command: commands.ImportEdit) -> EditWaits | None:
    """Why a person's edit waits until a maintainer confirms it; None where it can be imported."""
    task = None if command.accepted or command.created is not None else records.find(command.task_id)
    if task is None or not records.policy.binds:
        return None
    leaves = task.status == "review" and command.status not in (None, "review")
    does = [f"takes it out of review into {command.status}"] if leaves else []
    moves = command.status not in (None, task.status)
    holders = [lease.agent for lease in leases(task)] if moves else []
    if holders:
        does.append(f"ends the run of {', '.join(holders)}")
    if revives := moves and task.status in FINISHED:
        does.append("begins it again")
    if fields := gated_changes(records.policy, task, theirs(command.changes)):
        does.append(f"changes what its gates read: {', '.join(fields)}")
    if not does:
        return None
    return EditWaits(
        f"an edit by hand of {task.id} waits for a maintainer: it {' and '.join(does)}",
        f"'aof sync --accept {task.id}' imports it, and 'aof sync --refuse {task.id}' puts it aside",
        task_id=task.id,
        fields=[*fields, *["status"] * (leaves or revives or bool(holders))],
    )


def gate_refusal(records: Records, task: Task, command: commands.OnTask) -> AofError | None:
    """Why the acting agent may not change what gates read about this task, or end somebody else's run."""
    policy = records.policy
    if not policy.binds:
        return None
    if not isinstance(command, commands.Edit):
        return _interrupts(policy, task, command, acting(task, command))
    if _only_assigns(task, command):
        return rights.not_assigned(records, task, command)
    fields = gated_changes(policy, task, changed_fields(task, command.changes))
    return _changes_gates(records, task, command, fields) if fields else None


def _only_assigns(task: Task, command: commands.Edit) -> bool:
    """Whether the edit gives a reserved task that waits to another agent, and changes nothing else that gates read."""
    routing = command.changes.get("routing")
    waits = task.status in ("backlog", "ready", "blocked")
    reserved = task.routing.agent is not None and not task.gated and waits
    return (
        reserved and command.changes.keys() == {"routing"} and isinstance(routing, dict) and routing.keys() == {"agent"}
    )


def _interrupts(policy: Policy, task: Task, command: commands.OnTask, agent: str) -> NotAllowed | None:
    """Why the acting agent may not end somebody else's run by blocking the task, or by giving it up."""
    ends = isinstance(command, commands.Block | commands.Pause) or (
        task.gated and isinstance(command, commands.Update) and command.status in ("blocked", "deadletter")
    )
    holder = next((lease.agent for lease in leases(task) if lease.agent != agent), None) if ends else None
    if holder is None or agent in policy.maintainers or leads(policy, agent):
        return None
    return NotAllowed(
        f"{holder} is at work on {task.id}, and {agent} may not interrupt that",
        f"leave it to {holder}, a lead or a maintainer; or say in a comment what is in the way",
        Call("comment", {"task_id": task.id, "text": "…"}),
        agent=agent,
        holder=holder,
    )


def _changes_gates(records: Records, task: Task, command: commands.Edit, fields: tuple[str, ...]) -> AofError | None:
    """The refusal of an agent that may not change what the task's gates read."""
    policy, agent = records.policy, acting(task, command)
    runs = took_part(task, (agent, command.actor, command.session))
    if is_person(policy.org, agent, policy.maintainers):
        return None
    if runs and "reviewRequired" in fields:
        return OwnWork(
            f"{agent} has worked on {task.id} and may not change whether its work is reviewed (reviewRequired)",
            "leave reviewRequired to the task's creator, a lead or a maintainer",
            Call("show", {"task_id": task.id}),
            agent=agent,
        )
    if agent in policy.maintainers:
        return None
    if not runs and (leads(policy, agent) or (task.created_by == agent and agent not in policy.only_said)):
        return None
    why = f"{agent} runs {task.id} or has run it" if runs else f"{task.id} is not {agent}'s"
    return NotAllowed(
        f"{why}, and may not change what its gates read: {', '.join(fields)}",
        "leave it to its creator, a lead or a maintainer; description, notes and progress stay yours",
        Call("progress", {"task_id": task.id, "note": "…"}),
        agent=agent,
        fields=list(fields),
    )


def waived_review(records: Records, command: commands.OnTask) -> ReviewRequired | None:
    """The refusal to skip a review that the settings demand; a maintainer may."""
    if isinstance(command, commands.Create):
        waived = _without_review(records, command.metadata, command.tags)
    elif isinstance(command, commands.Edit):
        waived = _gives_up_review(records, records.task(command.task_id), command.changes)
    elif isinstance(command, commands.ImportEdit) and command.created is not None:
        given = command.created.get("routing")
        tags = given.get("tags") if isinstance(given, dict) else None
        waived = _without_review(records, command.created.get("metadata"), tags)
    else:
        waived = isinstance(command, commands.ImportEdit) and _gives_up_review(
            records, records.task(command.task_id), command.changes
        )
    names = {command.acting, command.actor, command.session or command.actor}
    trusted = names <= set(records.policy.maintainers) and command.vouched != "secret" and not command.limited
    if not waived or (trusted and not isinstance(command, commands.ImportEdit)):
        return None
    required = records.policy.review_required
    which = "every task" if required is True else f"every task with the tag {' or '.join(required or ())}"
    return ReviewRequired(
        f"aof.toml demands the review of {which}, and {command.acting} is no maintainer who may do without",
        "leave the review as it is, or let a maintainer decide at the command line",
        Call("create", {"title": "…", "brief": "…"}) if isinstance(command, commands.Create) else None,
    )


def _without_review(records: Records, metadata: Any, tags: Any) -> bool:
    """Whether a task with these would not be reviewed although the settings demand it."""
    required = records.policy.review_required
    demanded = required is True or not set(required or ()).isdisjoint(tags if isinstance(tags, list | tuple) else ())
    return demanded and isinstance(metadata, dict) and metadata.get("reviewRequired") is False


def _gives_up_review(records: Records, task: Task, given: dict[str, Any]) -> bool:
    """Whether an edit takes a review away, or the tag because of which it is demanded."""
    changes = changed_fields(task, {name: value for name, value in given.items() if name in ("routing", "metadata")})
    tags = changes["routing"].get("tags", ()) if "routing" in changes else task.routing.tags
    required = records.policy.review_required
    dropped = set() if isinstance(required, bool) else set(required) & set(task.routing.tags) - set(tags)
    before = _without_review(records, task.metadata, task.routing.tags)
    return bool(dropped) or (_without_review(records, changes.get("metadata", task.metadata), tags) and not before)


def foreign_parent(records: Records, command: commands.OnTask, parent_id: Any) -> NotAllowed | None:
    """The refusal to put a child below somebody else's task, which could not be completed before the child.

    Without a chart or strict identity a name is only an attribution, and only a task that somebody runs is protected.
    """
    parent = records.find(parent_id) if isinstance(parent_id, str) and is_task_id(parent_id) else None
    if parent is None or parent.status in FINISHED or command.actor == OURSELVES:
        return None
    policy, task = records.policy, None if isinstance(command, commands.Create) else records.find(command.task_id)
    if (task is not None and task.parent_id == parent.id) or not (policy.binds or leases(parent)):
        return None
    names = {command.acting, command.actor, command.session or command.actor}
    if any(owns(parent, name, policy.only_said) or name in policy.maintainers or leads(policy, name) for name in names):
        return None
    holders = ", ".join(lease.agent for lease in leases(parent)) or parent.owner or parent.created_by
    return NotAllowed(
        f"{parent.id} is {holders}'s, and {command.acting} may not put an open child below it",
        f"let {holders}, its owner, a lead or a maintainer do it, or create the task without a parent and link it",
        Call("show", {"task_id": parent.id}),
        agent=command.acting,
    )


def beyond_work(task: Task, command: commands.OnTask) -> NotAllowed | None:
    """The refusal of a command that needs more than a token for work on this task.

    A session that nobody has named has the user's name, often a maintainer's: it judges nothing. Who did the work may
    take it back.
    """
    judges = right_for(task, command) == "judge" and not takes_back(task, command, acting(task, command))
    if judges and command.vouched is None:
        return NotAllowed(
            f"nobody has said who this session is, so it approves and rejects nothing, {task.id} neither",
            "set AOF_ACTOR in the settings of the MCP client, or let a person do it",
            Call("show", {"task_id": task.id}),
        )
    if command.vouched is None:
        return None
    what = "approving or rejecting it" if judges else _for_leads(task, command)
    if what is None:
        return None
    return NotAllowed(
        f"{task.id} is {task.status}, and {what} needs a token with the scope lead",
        f"ask for one: aof admin token create {command.session or command.acting} --scope lead",
        Call("show", {"task_id": task.id}),
        scope="work",
    )


def _role_unproven(task: Task, command: commands.OnTask) -> NotAllowed | None:
    """Why a session does not take what is meant for a role when nobody but itself has said who it is."""
    takes = right_for(task, command) == "take" or (isinstance(command, commands.Complete) and task.status == "ready")
    role = "its hops need one" if task.gated else f"it needs '{task.routing.role}'" if task.routing.role else None
    if command.vouched is not None or not takes or role is None:
        return None
    return NotAllowed(
        f"nobody has said who this session is, so it has no role, and {task.id} is for a role: {role}",
        f"set AOF_ACTOR={command.acting[:80]} in the settings of the MCP client, or use a token over HTTP",
        Call("show", {"task_id": task.id}),
        agent=command.acting[:80],
    )


def _for_leads(task: Task, command: commands.OnTask) -> str | None:
    """The action of a lead that the command is, in words; also as a part of something else, such as an undo."""
    if tries_again(task, command):
        return "retrying it"
    return "cancelling it" if _cancels(task, command) else _LEADING.get(type(command))


def _cancels(task: Task, command: commands.OnTask) -> bool:
    moves = command.status if isinstance(command, commands.Update) else None
    return isinstance(command, commands.CancelTask) or (moves == "cancelled" and task.status != "cancelled")


def unproven_gate(records: Records, task: Task, command: commands.OnTask) -> Unauthenticated | None:
    """Why a name is not enough to judge, to cancel or to change a gate, where secrets are asked for."""
    trusted = {command.actor, command.session or command.actor} <= set(records.policy.maintainers)
    if not command.outside or command.vouched is not None or trusted:
        return None
    gated = isinstance(command, commands.Edit) and bool(
        gated_changes(records.policy, task, changed_fields(task, command.changes))
    )
    if not (gated or _cancels(task, command) or right_for(task, command) == "judge"):
        return None
    return Unauthenticated(
        f"this change of {task.id} must come from a caller that has proven who it is",
        "send a token over HTTP, or the secret of a run of your own that is under way; a maintainer needs neither",
        Call("show", {"task_id": task.id}),
    )
