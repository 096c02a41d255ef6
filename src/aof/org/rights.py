"""What the agents of a chart may do, who may act for whom, and whom a task is reserved for."""

from __future__ import annotations

from typing import Final, Literal

from aof.errors import ActorMismatch, AofError, Call, NotAllowed, OwnWork, Reserved
from aof.kernel import commands
from aof.kernel.commands import Records
from aof.kernel.model import Policy
from aof.org.model import Agent, OrgChart, RoleKind
from aof.runs.authentication import authors, folded_names, is_own, is_shell, part_in, ran_work
from aof.tasks.model import Task
from aof.workflows.model import leases

_AT_ONCE: Final = 1  # tasks of an agent that the chart does not list
Kind = Literal["worker", "reviewer", "lead", "maintainer"]
Right = Literal["take", "run", "steer", "judge"]
Reach = Literal["any", "own", "none"]
# take: create and claim. run: write to a run that one holds. steer: hold, cancel, change. judge: approve and reject.
RIGHTS: Final[dict[Kind, dict[Right, Reach]]] = {
    "worker": {"take": "any", "run": "any", "steer": "own", "judge": "none"},
    "reviewer": {"take": "any", "run": "any", "steer": "own", "judge": "any"},
    "lead": {"take": "any", "run": "any", "steer": "any", "judge": "any"},
    "maintainer": {"take": "any", "run": "any", "steer": "any", "judge": "any"},
}
# What a role allows by its name, where the chart gives it no kind.
KINDS_BY_NAME: Final[dict[str, RoleKind]] = {
    "reviewer": "reviewer",
    "lead": "lead",
    "orchestrator": "lead",
    "architect": "lead",
}
_ALONE: Final = "; if you work alone, allow it for all your work: 'aof init --solo' (selfReview in aof.toml)"
_STEERING: Final = (
    commands.CancelTask,
    commands.Block,
    commands.Unblock,
    commands.Pause,
    commands.Resume,
    commands.RetryTask,
    commands.Edit,
    commands.ArchiveTask,
    commands.UnarchiveTask,
    commands.AddDependency,
    commands.RemoveDependency,
    commands.AddLink,
    commands.RemoveLink,
    commands.AnswerQuestion,
)
_MOVES_OF_A_RUN: Final = ("ready", "review", "blocked", "deadletter")


def is_person(chart: OrgChart | None, name: str, maintainers: tuple[str, ...]) -> bool:
    """Whether the name is a maintainer's who is not an agent of the chart."""
    return name in maintainers and (chart is None or name not in chart.by_id)


def entry_of(chart: OrgChart, name: str, maintainers: tuple[str, ...]) -> Agent | None:
    """The chart's entry of a name; an agent that it does not list may run one task at a time. None for a person."""
    if is_person(chart, name, maintainers):
        return None
    return chart.by_id.get(name) or Agent(id=name, concurrency=_AT_ONCE)


def roles_of(chart: OrgChart, name: str) -> frozenset[str]:
    """The roles of a name: none where the chart does not list it."""
    return chart.roles_of.get(name, frozenset())


def unlisted(policy: Policy, *names: str | None) -> NotAllowed | None:
    """The refusal of the first name that neither the chart nor the settings know, where such names are refused."""
    if policy.org is None or not policy.refuse_unlisted:
        return None
    for name in names:
        if name is not None and name not in policy.org.by_id and name not in policy.maintainers:
            return NotAllowed(
                f"{name[:80]} is neither in the org chart nor a maintainer, and unlisted agents may not write here",
                "call as an agent of the chart, or let a maintainer add this one",
                Call("org_show", {}),
                agent=name[:80],
            )
    return None


def impersonation(policy: Policy, task: Task | None, command: commands.OnTask) -> ActorMismatch | None:
    """The refusal of a name, or of a role, that is not the caller's own."""
    caller = _bound(policy, task, command)
    if caller is None:
        return None
    agent = acting(task, command)
    for claimed in dict.fromkeys((command.actor, agent)):
        if claimed != caller and not may_act_for(policy, caller, claimed, task, command):
            return mismatch(caller, claimed)
    return _foreign_role(policy, task, agent, command)


def _bound(policy: Policy, task: Task | None, command: commands.OnTask) -> str | None:
    """The one actor that the caller is bound to; None where a name is all that is known, and enough.

    A name is enough to pass on what another says about its work, but not to judge work for another.
    """
    if not command.outside:
        return None
    judges = task is not None and task.status == "review" and getattr(command, "status", None) not in (None, "review")
    relayed = isinstance(command, commands.OwnRule) and judges
    if command.session is not None or not (policy.strict or relayed):
        return command.session
    return delivered_by(command)


def delivered_by(command: commands.OnTask) -> str:
    """The caller of the command; of a message, the one that delivered it."""
    caller: str = getattr(command, "caller", command.actor)
    return caller


def may_act_for(
    policy: Policy, caller: str, agent: str, task: Task | None, command: commands.OnTask | None = None
) -> bool:
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


def _team(chart: OrgChart, task: Task | None, command: commands.OnTask | None) -> str | None:
    """The team of a task: its own, else that of the agent that it is for, else that of the agent that runs it."""
    if isinstance(command, commands.Create):
        return command.team or _team_of(chart, command.assignee)
    if task is None:
        return None
    named = task.routing.team or _team_of(chart, task.routing.agent)
    return named or next((team for lease in leases(task) if (team := _team_of(chart, lease.agent))), None)


def _team_of(chart: OrgChart, agent: str | None) -> str | None:
    return chart.by_id[agent].team if agent is not None and agent in chart.by_id else None


def _foreign_role(policy: Policy, task: Task | None, agent: str, command: commands.OnTask) -> ActorMismatch | None:
    """The refusal of a role that the chart does not give to the acting agent."""
    chart, role = policy.org, command.caller_role if isinstance(command, commands.Complete) else None
    if chart is None or role is None or role in roles_of(chart, agent) or is_person(chart, agent, policy.maintainers):
        return None
    has = ", ".join(sorted(roles_of(chart, agent))) or "no role"
    hops = task.workflow["hops"] if task is not None and task.gated else ()
    open_now = [f"hop '{hop['id']}' needs '{hop['role']}'" for hop in hops if hop.get("status") in ("ready", "running")]
    return ActorMismatch(
        f"{agent} does not have the role '{role[:80]}'{''.join(f'; {one}' for one in open_now)}",
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


def kind_of(chart: OrgChart, agent: str, maintainers: tuple[str, ...] = ()) -> Kind:
    """The highest kind of the agent: by the settings, by its teams, or by its roles."""
    if agent in maintainers:
        return "maintainer"
    kinds = {_kind_of_role(chart, role) for role in chart.roles_of.get(agent, ())}
    if "lead" in kinds or any(agent in (team.lead, team.orchestrator) for team in chart.teams):
        return "lead"
    return "reviewer" if "reviewer" in kinds else "worker"


def leads(policy: Policy, name: str) -> bool:
    """Whether the chart makes the name a lead."""
    return policy.org is not None and kind_of(policy.org, name, policy.maintainers) == "lead"


def _kind_of_role(chart: OrgChart, role: str) -> RoleKind:
    given = chart.roles[role].kind if role in chart.roles else None
    return given or KINDS_BY_NAME.get(role, "worker")


def acting(task: Task | None, command: commands.OnTask) -> str:
    """The agent whose rights apply: that of the run that is named, else the acting agent, else the caller."""
    if task is None or command.run is None:
        return command.acting
    return next((lease.agent for lease in leases(task) if lease.run_id == command.run), command.acting)


def not_allowed(records: Records, chart: OrgChart, task: Task | None, command: commands.OnTask) -> AofError | None:
    """The refusal of what the acting agent's kind does not allow."""
    agent, maintainers = acting(task, command), records.policy.maintainers
    if task is None:
        return None
    right = right_for(task, command)
    borrowed = command.outside and agent != command.actor and right in ("steer", "judge")
    if borrowed and not may_act_for(records.policy, command.actor, agent, task):
        return mismatch(command.actor, agent)
    if is_person(chart, agent, maintainers):
        return None
    if right == "judge" and takes_back(task, command, agent):
        return None
    kind, reach = kind_of(chart, agent, maintainers), _reach(chart, agent, right, maintainers)
    over = reach == "own" and tries_again(task, command) and ran_work(task, agent)
    if reach == "any" or (reach == "own" and owns(task, agent, records.policy.only_said) and not over):
        return None
    who = "a reviewer, a lead or a maintainer" if right == "judge" else "its holder, its maker, a lead or a maintainer"
    what = "judge what is in review" if right == "judge" else f"change {task.id}, which is not its own"
    return NotAllowed(
        f"{agent} is a {kind} and may not {what}",
        f"leave it to {who}",
        Call("show", {"task_id": task.id}),
        agent=agent,
        agent_kind=kind,
    )


def tries_again(task: Task, command: commands.OnTask) -> bool:
    """Whether what was given up or cancelled is to be run again: the count of its attempts would begin again."""
    again = isinstance(command, commands.RetryTask) or (
        isinstance(command, commands.Update) and command.status == "ready"
    )
    return again and task.status in ("deadletter", "cancelled")


def right_for(task: Task, command: commands.OnTask) -> Right:
    """The right that a command needs: a status change counts as the operation that it really is."""
    if isinstance(command, commands.Approve | commands.Reject):
        return "judge"
    if isinstance(command, commands.Complete) and task.status == "review" and command.run is None:
        # From who ran the task it is a report. It judges a hop, too.
        return "run" if ran_work(task, command.acting) else "judge"
    if isinstance(command, commands.Block | commands.Pause) and task.status == "review":
        return "judge"  # what leaves the review in this way comes back as ready, to be done again
    if isinstance(command, commands.Update):
        return _right_for_update(task, command)
    if isinstance(command, commands.RecordDelivery):
        return "run" if leases(task) or not command.outside else "steer"
    return "steer" if isinstance(command, _STEERING) else "take" if isinstance(command, commands.Claim) else "run"


def _right_for_update(task: Task, command: commands.Update) -> Right:
    moves = command.status is not None and command.status != task.status
    if moves and task.status == "review" and command.status in ("done", "ready", "in-progress", "blocked"):
        return "judge"
    if moves and task.status == "ready" and command.status == "in-progress":
        return "take"
    if task.status == "in-progress" and (not moves or command.status in _MOVES_OF_A_RUN):
        return "run"
    return "steer" if moves or command.body is not None or command.note is not None else "run"


def owns(task: Task, agent: str, only_said: tuple[str, ...] = ()) -> bool:
    """Whether the task is the agent's: it holds, made or owns it, is to do it, or was at it when it got blocked.

    Who has `only_said` a maintainer's name has what it runs itself, and nothing that the maintainer made or owns.
    """
    holders = tuple(lease.agent for lease in leases(task))
    stuck = task.status == "blocked" and agent in task.retry.agents
    if agent in only_said:
        return stuck or agent in holders
    return stuck or agent in (*(holders or (task.routing.agent,)), task.created_by, task.owner)


def may_judge(policy: Policy, chart: OrgChart | None, agent: str, task: Task) -> bool:
    """Whether the agent could approve this task's work."""
    maintainers = policy.maintainers
    if not (policy.self_review or folded_names((agent,)).isdisjoint(authors(task))):
        return False
    if chart is None or is_person(chart, agent, maintainers):
        return True
    return _reach(chart, agent, "judge", maintainers) == "any"


def _reach(chart: OrgChart, agent: str, right: Right, maintainers: tuple[str, ...]) -> Reach:
    """What the table says; where the chart names nobody to judge, every listed agent may judge the others' work."""
    reach = RIGHTS[kind_of(chart, agent, maintainers)][right]
    if right != "judge" or reach == "any" or agent not in chart.by_id:
        return reach
    judges = (kind_of(chart, agent.id, maintainers) for agent in chart.agents if agent.active)
    return "none" if any(RIGHTS[one]["judge"] == "any" for one in judges) else "any"


def sends_back(command: commands.OnTask) -> bool:
    """Whether the command sends work back: an agent may take its own back, but not accept it."""
    return (
        isinstance(command, commands.Reject | commands.Block | commands.Pause)
        or (isinstance(command, commands.Update) and command.status != "done")
        or (isinstance(command, commands.Complete) and command.outcome == "needs_review")
    )


def takes_back(task: Task, command: commands.OnTask, agent: str) -> bool:
    """Whether the agent only takes back what it did itself; who ran the task before the last verdict did not do it."""
    return sends_back(command) and agent.casefold() in authors(task, getattr(command, "hop", None))


def own_work(records: Records, task: Task, command: commands.OnTask) -> OwnWork | None:
    """The refusal to approve one's own work; None for whoever did not run what waits for a verdict.

    Where the settings allow it, the event of the approval says that it was one's own work.
    """
    if right_for(task, command) != "judge" or sends_back(command):
        return None
    names, maintainers = authors(task, getattr(command, "hop", None)), records.policy.maintainers
    repeats = isinstance(command, commands.Complete) and not names.isdisjoint(
        folded_names((command.acting, command.actor))
    )
    if repeats or not is_own(records.policy, task, command, names):
        return None  # a report that the caller behind the run repeats changes nothing, and is no approval
    agent = acting(task, command)
    part, way_out = part_in(task, command, names, task.id)
    alone = "" if not is_shell(command) or (maintainers and command.actor not in maintainers) else _ALONE
    return OwnWork(
        f"{part} and cannot approve it",
        "somebody else approves it: another agent, or a maintainer under a name that has not worked on it"
        f"{way_out}{alone}; see what was done",
        Call("show", {"task_id": task.id}),
        agent=agent,
    )


def reservation_refusal(records: Records, task: Task, command: commands.OnTask) -> Reserved | NotAllowed | None:
    """Why the command may not take the task, or give it to another agent, because it is reserved."""
    agent = task.routing.agent
    if agent is None or task.gated:
        return None
    if isinstance(command, commands.Edit):
        routing = command.changes.get("routing", {})
        given_to = routing.get("agent", agent) if isinstance(routing, dict) else None
        return None if given_to == agent else not_assigned(records, task, command)
    if not _takes(task, command) or command.acting == agent or any(one.moves for one in task.handoffs):
        return None  # of a task that is being handed over, the handoff says who takes it
    if isinstance(command, commands.Claim) and command.steal:
        return not_assigned(records, task, command)
    return _reserved(records, task, agent, command)


def not_assigned(records: Records, task: Task, command: commands.OnTask) -> NotAllowed | None:
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


def may_assign(records: Records, task: Task, command: commands.OnTask) -> bool:
    """Whether the caller may say whom the task is for; who has proven one name cannot use another's right."""
    policy = records.policy
    names = {command.proven} if command.proven else {command.actor, command.session or command.actor}
    own = {task.created_by, task.routing.agent} - set(policy.only_said)
    return any(name in own or name in policy.maintainers or leads(policy, name) for name in names)


def _takes(task: Task, command: commands.OnTask) -> bool:
    """Whether the command begins a run."""
    if isinstance(command, commands.Update):
        return command.status == "in-progress" and task.status in ("ready", "review")
    return isinstance(command, commands.Claim | commands.Complete) and task.status == "ready" and command.run is None


def _reserved(records: Records, task: Task, agent: str, command: commands.OnTask) -> Reserved:
    what, taker = f"{task.id} is reserved for {agent}", command.acting
    if not may_assign(records, task, command):
        hint = f"take another one; {agent}, its creator {task.created_by} or a maintainer may give it away"
        return Reserved(what, hint, Call("claim", {"agent": taker}), agent=agent)
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
