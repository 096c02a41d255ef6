"""Who ran the work of a task: whoever did neither approves it nor does the review hop after it.

A run is its agent's work, and that of the caller who claimed it or reported for it. A maintainer at the command line
who acts for an agent is no author of that agent's work. Where the settings name no maintainer, a name alone tells
nobody apart. Must not know what is refused because of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from aof.core.model.commands import OnTask
from aof.core.model.policy import Policy
from aof.core.model.records import Decision, Records
from aof.core.model.run import PULL
from aof.core.model.task import Task
from aof.core.model.workflow import HopState, Workflow, leases, workflow_of


def did(task: Task, agent: str) -> bool:
    """Whether the agent holds a run of the task or has had one."""
    return agent.casefold() in folded((*task.retry.agents, *(lease.agent for lease in leases(task))))


def took_part(task: Task, names: Iterable[str | None]) -> bool:
    """Whether one of the names has ever run the task, or was the caller behind a run of the work that it holds now."""
    hops = workflow_of(task).hops if task.gated else ()
    known = folded((*task.retry.agents, *task.retry.ran_by, *(lease.agent for lease in leases(task))))
    return not (known | of_hops(hops)).isdisjoint(folded(names))


def folded(names: Iterable[str | None]) -> frozenset[str]:
    """The names, told apart without regard to upper and lower case."""
    return frozenset(name.casefold() for name in names if name is not None)


def of_hops(hops: Iterable[HopState]) -> frozenset[str]:
    """Who ran these hops since they were last opened; of runs of earlier versions only the last agent is known."""
    return folded(name for hop in hops for name in (*hop.ran_by, hop.agent))


def authors(task: Task, hop: str | None = None) -> frozenset[str]:
    """Who ran the work that waits for a verdict.

    Of a gated task it is what was done in the hop, or in those that wait, and in the hops before. A record of an
    earlier version only tells who has ever run the task.
    """
    if not task.gated:
        return folded(task.retry.ran_by or (*task.retry.agents, *(lease.agent for lease in leases(task))))
    workflow = workflow_of(task)
    waiting = [one.id for one in workflow.hops if one.status == "review" and hop in (None, one.id)]
    return of_hops(one for name in waiting for one in _with_those_before(workflow, name))


def _with_those_before(workflow: Workflow, hop: str) -> list[HopState]:
    before = workflow.template.before(hop)
    return [one for one in workflow.hops if one.id == hop or one.id in before]


def is_own(policy: Policy, task: Task, command: OnTask, names: frozenset[str]) -> bool:
    """Whether one of the names is the caller's, or that in which it acts."""
    if names.isdisjoint(callers(policy, command)):
        return False
    return not (is_shell(command) and command.actor in policy.maintainers and not did(task, command.actor))


def callers(policy: Policy, command: OnTask) -> frozenset[str]:
    """The names that the command comes from.

    Where callers are not bound, the user of the operating system is none of them beside the agent that is named: who
    starts several agents under one user, and names each, has said who calls.
    """
    stands_behind = not command.unnamed or policy.binds
    return folded((command.acting, command.actor if stands_behind else None, command.session))


def is_shell(command: OnTask) -> bool:
    """Whether only a name says who calls, it acts for itself, and no run is named: a person at the command line."""
    unproven = command.session is None and command.vouched is None and command.run is None and not command.limited
    return unproven and command.acting == command.actor


def part_in(task: Task, command: OnTask, names: frozenset[str], work: str) -> tuple[str, str]:
    """How the caller took part in the `work` of these names, as the beginning of a sentence; and how to call instead.

    Who has called a run of another agent learns whose, and that its own name may have been none of its choice.
    """
    agent, caller = command.acting, command.session or command.actor
    agents = [name for name in task.retry.agents if name.casefold() in names]
    if agent.casefold() in folded(agents) or not agents:
        return f"{agent} has worked on {work}", ""
    who = caller if caller == agent else f"{caller}, who calls as {agent},"
    free = caller != agent and command.session is None
    return (
        f"{who} also called {agents[0]}'s run of {work}",
        f"; or {agent} calls itself: --actor {agent}" if free else "",
    )


def signed(records: Records, command: OnTask, decision: Decision) -> None:
    """Write into the events of runs that begin, and of reports, who is behind them."""
    for draft in decision.drafts:
        payload = draft.payload
        if draft.type == "task.attempt.started":
            agent = payload["agent"]
            behind = _behind(records.policy, command, agent) if payload["worker"] == PULL else []
            payload["ranBy"] = [agent, *behind]
        elif draft.type == "task.completed" and (
            behind := _behind(records.policy, command, payload["result"]["agentId"])
        ):
            payload["ranBy"] = behind


def _behind(policy: Policy, command: OnTask, agent: str) -> list[str]:
    """The caller beside the agent, where there is another one."""
    caller = command.session or str(getattr(command, "caller", command.actor))
    plain = command.session is None and (caller in policy.maintainers or not policy.maintainers)
    return [] if caller == agent or plain else [caller]
