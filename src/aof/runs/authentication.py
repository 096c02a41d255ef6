"""Authentication of a caller to a run: what it has proven, against what it claims and the lease it writes under.

Who ran the work of a task is told here as well, because nobody judges their own work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from aof.errors import ActorMismatch, AofError, Call, StaleLease, Unauthenticated
from aof.kernel import commands
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decision, OnTask, Records
from aof.kernel.model import Policy, is_agent_name, task_of_run
from aof.runs.model import PULL
from aof.tasks.model import Lease, Task
from aof.workflows import model as workflows_model
from aof.workflows.model import HopState, Workflow, leases, workflow_of

_DIGITS: Final = 64
_HEX: Final = frozenset("0123456789abcdef")
_LONGEST: Final = 320
_CALLS: Final[dict[type[commands.OnTask], str]] = {
    commands.RecordHeartbeat: "heartbeat",
    commands.Release: "release",
    commands.ReportProgress: "progress",
    commands.Ask: "ask",
    commands.Update: "update",
    commands.Complete: "complete",
    commands.Fail: "fail",
}


_REPEATED: Final[dict[type[commands.OnTask], tuple[str, ...]]] = {
    commands.Release: ("reason", "wait_for_children"),
    commands.ReportProgress: ("text", "percent", "phase", "note"),
    commands.Ask: ("text", "choices"),
    commands.Update: ("note", "body", "status", "wait_for_children", "reason"),
    commands.Complete: ("summary", "outcome", "blockers"),
    commands.Fail: ("code", "message"),
}


class Secret(msgspec.Struct, frozen=True):
    """The parts of a secret."""

    task_id: str
    run: str
    agent: str
    random: str

    def __repr__(self) -> str:
        return f"Secret(run={self.run!r})"


def secret_of(run: str, agent: str, random: str) -> str:
    """The secret as its holder keeps it."""
    return f"{run}/{agent}/{random}"


def understood(text: str) -> Secret | None:
    """The parts of a secret; None for what cannot be one."""
    if len(text) > _LONGEST or text.count("/") != 2:  # noqa: PLR2004 - the form has two
        return None
    run, agent, random = text.split("/")
    task_id = task_of_run(run)
    if task_id is None or not is_agent_name(agent) or len(random) != _DIGITS or not _HEX.issuperset(random):
        return None
    return Secret(task_id, run, agent, random)


def same_call(command: commands.OnTask, run: str) -> Call:
    """The call that was refused, for this run; long texts are left to be filled in."""
    given: dict[str, Any] = {}
    for name in _REPEATED.get(type(command), ()):
        value = getattr(command, name)
        if value is not False and value not in (None, "", ()):
            given[name] = "…" if isinstance(value, str) and len(value) > kernel_limits.ITEM else value
    return Call(_CALLS.get(type(command), "heartbeat"), {"task_id": command.task_id, **given, "run": run})


def unknown_secret() -> Unauthenticated:
    """The refusal of an unknown secret; it repeats no part of it."""
    return Unauthenticated(
        "this is not the secret of a run that is under way here",
        "send the secret exactly as the claim returned it, or none",
        Call("claim", {"agent": "…"}),
    )


def over(task_id: str, run: str) -> StaleLease:
    """The refusal of a secret whose run has ended."""
    return StaleLease(
        f"run {run[:80]} is over, and its secret with it",
        "stop this work, or claim again and send the new run's secret",
        Call("show", {"task_id": task_id}),
        run_id=run[:80],
    )


def mismatch(name: str, claimed: str, command: commands.OnTask | None = None) -> ActorMismatch:
    """The refusal of a name that contradicts what the caller has proven."""
    hint = "leave out who acts: the token or the secret says it"
    call = None
    if command is None:
        hint, call = "claim as yourself, or leave the secret out", Call("claim", {"agent": name})
    elif type(command) in _CALLS:
        call = Call(_CALLS[type(command)], {"task_id": command.task_id})
    return ActorMismatch(f"the caller is {name}, and cannot act as {claimed[:80]}", hint, call, actor=name)


def contested(task: Task, lease: Lease) -> StaleLease:
    """The refusal of a name, or of a run's ID alone, where a merge of histories has ended another run of the task."""
    return StaleLease(
        f"{task.id} was claimed in two clones, and run {lease.run_id} of {lease.agent} stands: a name does not tell "
        "whose write this is",
        "send the secret that the claim of that run returned, as AOF_RUN_SECRET; any other run stops its work",
        Call("show", {"task_id": task.id}),
        run_id=lease.run_id,
    )


def _unfenced(lease: Lease, command: commands.OnTask) -> bool:
    """Whether a write under a contested lease lacks its secret; the host of a worker that it started needs none."""
    if not lease.contested or command.proof or command.vouched == "token":
        return False
    return command.run is None or (lease.secret_digest is not None and lease.worker == PULL)


def unproven(task: Task, lease: Lease, command: commands.OnTask) -> Unauthenticated | StaleLease | None:
    """Why the caller has not shown that it holds this lease; leases of older versions have no secret to ask for."""
    known = lease.secret_digest
    if _unfenced(lease, command):
        return contested(task, lease)
    if command.proof is None or command.proof == (known or ""):
        return None
    if not command.proof and command.vouched == "token" and kept_for(lease, command.session):
        return None
    if command.proof:
        return Unauthenticated(
            f"this is not the secret of run {lease.run_id}",
            f"send the one that the claim of {task.id} returned",
            Call("show", {"task_id": task.id}),
            run_id=lease.run_id,
        )
    return Unauthenticated(
        f"a write to {task.id} must come with the secret of run {lease.run_id}",
        "send the one that the claim returned: as AOF_RUN_SECRET, as the header AOF-Run-Secret, or by the session",
        Call("show", {"task_id": task.id}),
        run_id=lease.run_id,
    )


def kept_for(lease: Lease, name: str | None) -> bool:
    """Whether the claim outlives its session and was made by the caller of this name, which stands for its run."""
    return name is not None and lease.kept_by == name


def unprovable(command: commands.Claim) -> Unauthenticated | None:
    """Why a claim cannot outlive its session: a later one would have neither the run's secret nor a token."""
    if not command.keep or lasting(command):
        return None
    return Unauthenticated(
        "secrets are required here, and a later session would not have the secret of this run",
        "keep a claim over HTTP with a token, or leave 'keep' out (or false, where the connection sets it)",
        Call("claim", {"task_id": command.task_id, "agent": command.acting, "keep": False}),
    )


def lasting(command: commands.OnTask) -> bool:
    """Whether a later session could still show that it is the same caller: by a token, or where nobody asks."""
    return command.proof is None or command.vouched == "token"


def contradicted(records: Records, command: commands.OnTask) -> AofError | None:
    """Why what the caller has proven does not allow the command at all."""
    if command.proven is None and not command.proof:
        return None
    if command.proven is not None and command.acting != command.proven:
        return mismatch(command.proven, command.acting, command)
    task = None if isinstance(command, commands.Create) else records.find(command.task_id)
    if task is None or command.run is None:
        return None
    lease = lease_of(task, command.run)
    if lease is not None and command.proven not in (None, lease.agent):
        return mismatch(str(command.proven), lease.agent, command)
    if not command.proof or isinstance(command, commands.OwnRule | commands.Complete):
        return None  # their own rules check the lease, and recognise a repeated report
    return unproven(task, lease, command) if lease is not None else over(task.id, command.run)


def lease_of(task: Task, run: str) -> Lease | None:
    """The lease of that run: the task's own, or a hop's."""
    if not task.gated:
        return task.lease if task.lease is not None and task.lease.run_id == run else None

    return next((lease for lease in workflows_model.leases(task) if lease.run_id == run), None)


def ran_work(task: Task, agent: str) -> bool:
    """Whether the agent holds a run of the task or has had one."""
    return agent.casefold() in folded_names((*task.retry.agents, *(lease.agent for lease in leases(task))))


def took_part(task: Task, names: Iterable[str | None]) -> bool:
    """Whether one of the names has ever run the task, or was the caller behind a run of the work that it holds now."""
    hops = workflow_of(task).hops if task.gated else ()
    known = folded_names((*task.retry.agents, *task.retry.ran_by, *(lease.agent for lease in leases(task))))
    return not (known | of_hops(hops)).isdisjoint(folded_names(names))


def folded_names(names: Iterable[str | None]) -> frozenset[str]:
    """The names, told apart without regard to upper and lower case."""
    return frozenset(name.casefold() for name in names if name is not None)


def of_hops(hops: Iterable[HopState]) -> frozenset[str]:
    """Who ran these hops since they were last opened; of runs of earlier versions only the last agent is known."""
    return folded_names(name for hop in hops for name in (*hop.ran_by, hop.agent))


def authors(task: Task, hop: str | None = None) -> frozenset[str]:
    """Who ran the work that waits for a verdict.

    Of a gated task it is what was done in the hop, or in those that wait, and in the hops before. A record of an
    earlier version only tells who has ever run the task.
    """
    if not task.gated:
        return folded_names(task.retry.ran_by or (*task.retry.agents, *(lease.agent for lease in leases(task))))
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
    return not (is_shell(command) and command.actor in policy.maintainers and not ran_work(task, command.actor))


def callers(policy: Policy, command: OnTask) -> frozenset[str]:
    """The names that the command comes from.

    Where callers are not bound, the user of the operating system is none of them beside the agent that is named: who
    starts several agents under one user, and names each, has said who calls.
    """
    stands_behind = not command.unnamed or policy.binds
    return folded_names((command.acting, command.actor if stands_behind else None, command.session))


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
    if agent.casefold() in folded_names(agents) or not agents:
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
