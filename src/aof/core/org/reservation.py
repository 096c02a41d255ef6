"""Whom a task is reserved for: nobody else takes it, and only some may give it to somebody else.

A task with an agent is that agent's, with and without an org chart, over every release, failure and recovery. Its
maintainers, leads and creator, and the agent itself, may assign it anew. In a workflow the roles of the hops say who
does what, so a gated task is reserved for nobody. Must not know how a run begins.
"""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.org import NotAllowed
from aof.core.errors.runs import Reserved
from aof.core.model import commands as c
from aof.core.model.records import Records
from aof.core.model.task import Task
from aof.core.org import rights


def refused(records: Records, task: Task, command: c.OnTask) -> Reserved | NotAllowed | None:
    """Why the command may not take the task, or give it to another agent, because it is reserved."""
    agent = task.routing.agent
    if agent is None or task.gated:
        return None
    if isinstance(command, c.Edit):
        return None if _given_to(command, agent) == agent else not_assigned(records, task, command)
    if not _takes(task, command) or command.acting == agent or any(one.moves for one in task.handoffs):
        return None  # of a task that is being handed over, the handoff says who takes it
    if isinstance(command, c.Claim) and command.steal:
        return not_assigned(records, task, command)
    return _reserved(records, task, agent, command)


def _given_to(command: c.Edit, agent: str) -> str | None:
    """The agent that the task is for after an edit."""
    routing = command.changes.get("routing", {})
    return routing.get("agent", agent) if isinstance(routing, dict) else None


def not_assigned(records: Records, task: Task, command: c.OnTask) -> NotAllowed | None:
    """Why the caller may not say whom the task is for."""
    if may_assign(records, task, command):
        return None
    agent, who = task.routing.agent, command.proven or command.actor
    return NotAllowed(
        f"{task.id} is reserved for {agent}, and {who} may not give it to anybody else",
        f"leave it to {agent}, its creator {task.created_by}, a lead or a maintainer; or say in a comment why",
        Call("comment", {"task_id": task.id, "text": "…"}),
        agent=who,
    )


def may_assign(records: Records, task: Task, command: c.OnTask) -> bool:
    """Whether the caller may say whom the task is for; who has proven one name cannot use another's right."""
    policy, chart = records.policy, records.policy.org
    names = {command.proven} if command.proven else {command.actor, command.session or command.actor}
    own = {task.created_by, task.routing.agent} - set(policy.only_said)
    return any(
        name in own or name in policy.maintainers or (chart is not None and rights.kind_of(chart, name) == "lead")
        for name in names
    )


def _takes(task: Task, command: c.OnTask) -> bool:
    """Whether the command begins a run."""
    if isinstance(command, c.Update):
        return command.status == "in-progress" and task.status in ("ready", "review")
    return isinstance(command, c.Claim | c.Complete) and task.status == "ready" and command.run is None


def _reserved(records: Records, task: Task, agent: str, command: c.OnTask) -> Reserved:
    what, taker = f"{task.id} is reserved for {agent}", command.acting
    if not may_assign(records, task, command):
        told = f"take another one; {agent}, its creator {task.created_by} or a maintainer may give it away"
        return Reserved(what, told, Call("claim", {"agent": taker}), agent=agent)
    refusal = Reserved(
        f"{what}, not for {taker}",
        "assign it anew",
        Call("assign", {"task_id": task.id, "agent": taker}),
        agent=agent,
    )
    refusal.otherwise = (
        "steal it, which assigns and claims it",
        Call("claim", {"task_id": task.id, "agent": taker, "steal": True}),
    )
    return refusal
