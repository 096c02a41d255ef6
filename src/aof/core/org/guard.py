"""The org chart's say in every command, and all checks of a command's caller, in order.

Names must exist and be proven, rights must suffice, a claim must be the agent's to make. The caller is checked for
commands that somebody gave, and not for what AOF does by itself. Must not know how anything is loaded.
"""

from __future__ import annotations

from typing import Any

from aof.core.errors.base import AofError, Call
from aof.core.errors.org import AgentInactive, NoRoute, NotRouted
from aof.core.model import commands as c
from aof.core.model.org_chart import Agent, OrgChart
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.org.budgets.enforcement import one_run_too_many
from aof.core.org.capacity import at_capacity, counted
from aof.core.org.gates import beyond_work, gate_refusal, unproven_gate
from aof.core.org.rights import acting, delivered_by, entry_of, impersonation, not_allowed, right_for, unlisted
from aof.core.org.routing import refusal, work_of
from aof.core.validation.findings import suggestion

_SHOWN = 10


def caller_refused(records: Records, command: c.OnTask) -> AofError | None:
    """Why the caller may not give the command; None when nothing about the caller forbids it."""
    policy = records.policy
    task = None if isinstance(command, c.Create) else records.look(command.task_id)
    if policy.binds and command.outside:
        named = unlisted(policy, command.session, delivered_by(command), command.actor, command.agent)
        if refusal := impersonation(policy, task, command) or named:
            return refusal
    if task is None or isinstance(command, c.OwnRule):
        return None
    if command.limited and (refusal := beyond_work(task, command)):
        return refusal
    proven = unproven_gate(records, task, command) if policy.require_secret else None
    return proven or gate_refusal(records, task, command)


def forbidden(records: Records, chart: OrgChart, command: c.OnTask) -> AofError | None:
    """Why the chart does not allow the command; None when it does."""
    if isinstance(command, c.Create):
        return unknown_names(chart, {"agent": command.assignee, "role": command.role, "team": command.team})
    if isinstance(command, c.Expire | c.Settle | c.ImportEdit | c.TimeOut | c.Attach):
        return None
    task = records.look(command.task_id)
    if isinstance(command, c.Edit) and isinstance(given := command.changes.get("routing"), dict):
        unknown = unknown_names(chart, given)
        if unknown is not None:
            return unknown
    return not_allowed(records, chart, task, command) or _not_its_own(records, chart, task, command)


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


def _not_its_own(records: Records, chart: OrgChart, task: Task | None, command: c.OnTask) -> AofError | None:
    """The refusal of a claim, or of what begins with one."""
    again = task is not None and _takes_again(task, command)
    if task is None or task.lease is not None or not (again or _to_take(task)):
        return None
    agent = entry_of(chart, acting(task, command), records.policy.maintainers)
    if agent is None or not (again or isinstance(command, c.Complete) or right_for(task, command) == "take"):
        return None
    refused = _not_for(chart, task, agent) or one_run_too_many(agent, task)
    if refused is not None or isinstance(command, c.Complete):
        return refused  # what is over at once takes nobody's capacity
    return at_capacity(chart, agent, {name: len(records.held[name]) for name in counted(chart, agent)})


def _to_take(task: Task) -> bool:
    """Whether the task, or a hop of it, may be there to be taken."""
    return task.status == "ready" or (task.gated and task.status == "in-progress")


def _takes_again(task: Task, command: c.OnTask) -> bool:
    """Whether work in review is sent back to be done by the caller itself, which begins a run like any claim."""
    return task.status == "review" and isinstance(command, c.Update) and command.status == "in-progress"


def _not_for(chart: OrgChart, task: Task, agent: Agent) -> AofError | None:
    """Whatever load it has, the agent is not to take the task."""
    if not agent.active:
        return AgentInactive(
            f"{agent.id} is not active and takes no tasks",
            "set it active in the org chart, or let another agent take it",
            Call("org_show", {}),
            agent=agent.id,
        )
    # The hop itself says who may take it.
    why = None if task.gated else refusal(chart, work_of(task.routing, task.profile), agent.id)
    if why is not None:
        return NotRouted(
            f"{agent.id} may not take {task.id}: {why}",
            "see who would get it",
            Call("org_route", {"task_id": task.id}),
            agent=agent.id,
        )
    return None
