"""Whom a caller's write to shared work counts for: the holder of a lease, or an agent that takes part in the workflow.

Must not know what is written.
"""

from __future__ import annotations

from aof.core.errors.base import AofError, Call
from aof.core.errors.org import NotAllowed, Unauthenticated
from aof.core.handoffs.context import Writer
from aof.core.model.commands import OnTask
from aof.core.model.records import Records
from aof.core.model.task import Lease, Task
from aof.core.model.workflow import leases, workflow_of
from aof.core.org.rights import is_person, kind_of, owns, roles_of
from aof.core.runs.lease import authorize
from aof.core.tasks import graph
from aof.core.tasks.authorship import did
from aof.core.validation import limits
from aof.core.workflows import hop_lease

_NAME = 128


def heard(records: Records, command: OnTask) -> Task | AofError:
    """The task that the command is about, if there is one and the caller gives usable names."""
    problem = limits.line("actor", command.actor, _NAME, required=True) or limits.line("run", command.run, _NAME)
    if problem or (problem := limits.name("agent", command.agent)):
        return problem
    task = records.look(command.task_id)
    return graph.missing(command.task_id) if task is None else task


def holding(task: Task, command: OnTask) -> Lease | AofError:
    """The lease that the caller holds: the task's own or that of a hop; else why it holds none."""
    if task.gated:
        hop = hop_lease.held(task, workflow_of(task), command)
        if isinstance(hop, AofError):
            return hop
        assert hop.lease is not None
        return hop.lease
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    assert task.lease is not None
    return task.lease


def writer(records: Records, task: Task, command: OnTask) -> Writer | AofError:
    """The agent that takes part in the workflow, with what it may write; else why it may not write at all."""
    agent = command.acting
    if command.run is not None or any(lease.agent == agent for lease in leases(task)):
        lease = holding(task, command)
        if isinstance(lease, AofError):
            return lease
        return writer_of(records, lease.agent)
    if refusal := _unproven(records, task, command) or _stranger(records, task, agent):
        return refusal
    return writer_of(records, agent)


def writer_of(records: Records, agent: str) -> Writer:
    """What an agent may write: its roles and its team are in the chart, and leads and maintainers steer."""
    chart, maintainers = records.policy.org, records.policy.maintainers
    if chart is None:
        return Writer(agent=agent, steers=agent in maintainers)
    known = chart.by_id.get(agent)
    return Writer(
        agent=agent,
        roles=roles_of(chart, agent),
        teams=frozenset({known.team}) if known is not None and known.team is not None else frozenset(),
        steers=kind_of(chart, agent, maintainers) in ("lead", "maintainer"),
    )


def _unproven(records: Records, task: Task, command: OnTask) -> Unauthenticated | None:
    """Why a name is not enough, where secrets are asked for."""
    trusted = {command.actor, command.session or command.actor} <= set(records.policy.maintainers)
    if not records.policy.require_secret or not command.outside or command.vouched is not None or trusted:
        return None
    return Unauthenticated(
        f"a write to the context of {task.id} must come from a caller that has proven who it is",
        "send a token over HTTP, or the secret of a run of your own that is under way",
        Call("show", {"task_id": task.id}),
    )


def _stranger(records: Records, task: Task, agent: str) -> NotAllowed | None:
    """With a chart, only the agents of the workflow write to its context, and those who steer it."""
    chart, maintainers = records.policy.org, records.policy.maintainers
    if chart is None or is_person(chart, agent, maintainers) or writer_of(records, agent).steers:
        return None
    tree = [one for one in records.tasks.values() if one is not None]
    if any(owns(one, agent) or did(one, agent) for one in tree):
        return None
    return NotAllowed(
        f"{agent} takes no part in the workflow of {task.id} and may not write to its context",
        "claim a task of it first, or let one of its agents write",
        Call("claim", {"task_id": task.id, "agent": agent}),
        agent=agent,
    )
