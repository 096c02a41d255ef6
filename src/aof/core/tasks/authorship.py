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
    if names.isdisjoint(folded((command.acting, command.actor, command.session))):
        return False
    return not (_is_maintainers_shell(policy, command) and not did(task, command.actor))


def _is_maintainers_shell(policy: Policy, command: OnTask) -> bool:
    """Whether only a name says who calls, it is a maintainer's, and no run is named: a person at the command line."""
    unproven = command.session is None and command.vouched is None and command.run is None and not command.limited
    return unproven and command.acting == command.actor and command.actor in policy.maintainers


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
