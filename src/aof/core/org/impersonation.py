"""Who may act for whom: a session, a token or a run is one actor, unless the settings or the chart say more.

A maintainer may act for everybody, the orchestrator of a task's team for the members of that team. Asked only where a
chart or strict identity binds callers. Must not know how a caller has proven itself.
"""

from __future__ import annotations

from aof.core.errors.base import Call
from aof.core.errors.org import ActorMismatch
from aof.core.model import commands as c
from aof.core.model.org_chart import OrgChart
from aof.core.model.policy import Policy
from aof.core.model.task import Task
from aof.core.model.workflow_state import leases
from aof.core.org.membership import is_person, roles_of


def impersonation(policy: Policy, task: Task | None, command: c.OnTask) -> ActorMismatch | None:
    """The refusal of a name, or of a role, that is not the caller's own."""
    caller = _bound(policy, task, command)
    if caller is None:
        return None
    agent = _agent(task, command)
    for claimed in dict.fromkeys((command.actor, agent)):
        if claimed != caller and not may_act_for(policy, caller, claimed, task, command):
            return mismatch(caller, claimed)
    return _foreign_role(policy, task, agent, command)


def _bound(policy: Policy, task: Task | None, command: c.OnTask) -> str | None:
    """The one actor that the caller is; None where a name is all that is known and all that is asked for.

    A name is enough to pass on what another says about its work, but not to judge work for another.
    """
    if not command.outside:
        return None
    judges = task is not None and task.status == "review" and getattr(command, "status", None) not in (None, "review")
    relayed = isinstance(command, c.OwnRule) and judges
    if command.session is not None or not (policy.strict or relayed):
        return command.session
    return delivered_by(command)


def delivered_by(command: c.OnTask) -> str:
    """The caller of the command; of a message, the one that delivered it."""
    caller: str = getattr(command, "caller", command.actor)
    return caller


def _agent(task: Task | None, command: c.OnTask) -> str:
    """Whose rights are used: a run that is named speaks for its agent."""
    if task is None or command.run is None:
        return command.acting
    return next((lease.agent for lease in leases(task) if lease.run_id == command.run), command.acting)


def may_act_for(policy: Policy, caller: str, agent: str, task: Task | None, command: c.OnTask | None = None) -> bool:
    """Whether the caller may use the name of that agent on that task, or on the one that it creates."""
    if caller in policy.maintainers:
        return True
    chart = policy.org
    member = chart.by_id.get(agent) if chart is not None else None
    if chart is None or member is None or agent in policy.maintainers:
        return False
    team = _team(chart, task, command) or member.team
    return team is not None and member.team == team and orchestrates(chart, caller, team)


def orchestrates(chart: OrgChart, name: str, team: str | None = None) -> bool:
    """Whether the chart names somebody as the orchestrator of that team, or of any."""
    return any(one.orchestrator == name and team in (None, one.id) for one in chart.teams)


def _team(chart: OrgChart, task: Task | None, command: c.OnTask | None) -> str | None:
    """The team of a task: its own, else that of the agent that it is for, else that of the agent that runs it."""
    if isinstance(command, c.Create):
        return command.team or _team_of(chart, command.assignee)
    if task is None:
        return None
    named = task.routing.team or _team_of(chart, task.routing.agent)
    return named or next((team for lease in leases(task) if (team := _team_of(chart, lease.agent))), None)


def _team_of(chart: OrgChart, agent: str | None) -> str | None:
    return chart.by_id[agent].team if agent is not None and agent in chart.by_id else None


def _foreign_role(policy: Policy, task: Task | None, agent: str, command: c.OnTask) -> ActorMismatch | None:
    """The refusal of a role that the chart does not give to the acting agent."""
    chart, said = policy.org, command.caller_role if isinstance(command, c.Complete) else None
    if chart is None or said is None or said in roles_of(chart, agent) or is_person(chart, agent, policy.maintainers):
        return None
    has = ", ".join(sorted(roles_of(chart, agent))) or "no role"
    hops = task.workflow["hops"] if task is not None and task.gated else ()
    open_now = [f"hop '{hop['id']}' needs '{hop['role']}'" for hop in hops if hop.get("status") in ("ready", "running")]
    return ActorMismatch(
        f"{agent} does not have the role '{said[:80]}'{''.join(f'; {one}' for one in open_now)}",
        f"this is {agent}, with {has}: leave 'callerRole' out",
        Call("org_show", {}),
        actor=agent,
    )


def mismatch(caller: str, claimed: str) -> ActorMismatch:
    """The refusal that says who the caller is."""
    return ActorMismatch(
        f"the caller is {caller[:80]}, and cannot act as {claimed[:80]}",
        f"you are {caller[:80]}: leave out who acts, or let a maintainer or the orchestrator of the team do it",
        actor=caller[:80],
    )
