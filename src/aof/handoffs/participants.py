"""Who takes part in the work on a task, and what each of them may write to its shared context."""

from __future__ import annotations

from aof.errors import AofError, Call, NotAllowed, Unauthenticated
from aof.handoffs.context import Writer
from aof.kernel import limits
from aof.kernel.commands import OnTask, Records
from aof.org.rights import is_person, kind_of, owns, roles_of
from aof.runs.authentication import ran_work
from aof.runs.leases import authorize
from aof.tasks import graph
from aof.tasks.model import Lease, Task
from aof.workflows import hops
from aof.workflows.model import leases, workflow_of

_NAME = 128  # characters


def subject_task(records: Records, command: OnTask) -> Task | AofError:
    """The task that the command is about, if there is one and the caller gives usable names."""
    problem = (
        limits.line("actor", command.actor, _NAME, required=True)
        or limits.line("run", command.run, _NAME)
        or limits.name("agent", command.agent)
    )
    return problem or records.look(command.task_id) or graph.missing(command.task_id)


def holding(task: Task, command: OnTask) -> Lease | AofError:
    """The lease that the caller holds: the task's own or that of a hop; else why it holds none."""
    if task.gated:
        hop = hops.held_hop(task, workflow_of(task), command)
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
    """The agent that writes to the shared context; else why it may not write there at all.

    A holder shows its lease. Where secrets are asked for, anybody else needs more than a name. With a chart, only the
    agents of the workflow write to its context, and those who steer it.
    """
    agent, policy = command.acting, records.policy
    if command.run is not None or any(lease.agent == agent for lease in leases(task)):
        lease = holding(task, command)
        return lease if isinstance(lease, AofError) else writer_of(records, lease.agent)
    trusted = {command.actor, command.session or command.actor} <= set(policy.maintainers)
    if policy.require_secret and command.outside and command.vouched is None and not trusted:
        return Unauthenticated(
            f"a write to the context of {task.id} must come from a caller that has proven who it is",
            "send a token over HTTP, or the secret of a run of your own that is under way",
            Call("show", {"task_id": task.id}),
        )
    known = writer_of(records, agent)
    if policy.org is None or known.steers or is_person(policy.org, agent, policy.maintainers):
        return known
    if any(owns(one, agent) or ran_work(one, agent) for one in records.tasks.values() if one is not None):
        return known
    return NotAllowed(
        f"{agent} takes no part in the workflow of {task.id} and may not write to its context",
        "claim a task of it first, or let one of its agents write",
        Call("claim", {"task_id": task.id, "agent": agent}),
        agent=agent,
    )


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
