"""Compares the identity that a caller has proven with what it claims, and with the lease that it wants to write under.

A run's secret is `RUN/AGENT/RANDOM`, so it names its run. Only the digest of the last part is on record.
Must not know how a secret is drawn or sent.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.core.errors.base import AofError, Call
from aof.core.errors.org import ActorMismatch, Unauthenticated
from aof.core.errors.runs import StaleLease
from aof.core.model import commands as c
from aof.core.model import workflow
from aof.core.model.ids import is_agent_name, task_of_run
from aof.core.model.records import Records
from aof.core.model.run import PULL
from aof.core.model.task import Lease, Task
from aof.core.validation import limits

_DIGITS: Final = 64
_HEX: Final = frozenset("0123456789abcdef")
_LONGEST: Final = 320
_CALLS: Final[dict[type[c.OnTask], str]] = {
    c.RecordHeartbeat: "heartbeat",
    c.Release: "release",
    c.ReportProgress: "progress",
    c.Ask: "ask",
    c.Update: "update",
    c.Complete: "complete",
    c.Fail: "fail",
}


_REPEATED: Final[dict[type[c.OnTask], tuple[str, ...]]] = {
    c.Release: ("reason", "wait_for_children"),
    c.ReportProgress: ("text", "percent", "phase", "note"),
    c.Ask: ("text", "choices"),
    c.Update: ("note", "body", "status", "wait_for_children", "reason"),
    c.Complete: ("summary", "outcome", "blockers"),
    c.Fail: ("code", "message"),
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


def same_call(command: c.OnTask, run: str) -> Call:
    """The call that was refused, for this run; long texts are left to be filled in."""
    given: dict[str, Any] = {}
    for name in _REPEATED.get(type(command), ()):
        value = getattr(command, name)
        if value is not False and value not in (None, "", ()):
            given[name] = "…" if isinstance(value, str) and len(value) > limits.ITEM else value
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


def mismatch(name: str, claimed: str, command: c.OnTask | None = None) -> ActorMismatch:
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


def _unfenced(lease: Lease, command: c.OnTask) -> bool:
    """Whether a write under a contested lease lacks its secret; the host of a worker that it started needs none."""
    if not lease.contested or command.proof or command.vouched == "token":
        return False
    return command.run is None or (lease.secret_digest is not None and lease.worker == PULL)


def unproven(task: Task, lease: Lease, command: c.OnTask) -> Unauthenticated | StaleLease | None:
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


def unprovable(command: c.Claim) -> Unauthenticated | None:
    """Why a claim cannot outlive its session: a later one would have neither the run's secret nor a token."""
    if not command.keep or lasting(command):
        return None
    return Unauthenticated(
        "secrets are required here, and a later session would not have the secret of this run",
        "keep a claim over HTTP with a token, or leave 'keep' out (or false, where the connection sets it)",
        Call("claim", {"task_id": command.task_id, "agent": command.acting, "keep": False}),
    )


def lasting(command: c.OnTask) -> bool:
    """Whether a later session could still show that it is the same caller: by a token, or where nobody asks."""
    return command.proof is None or command.vouched == "token"


def contradicted(records: Records, command: c.OnTask) -> AofError | None:
    """Why what the caller has proven does not allow the command at all."""
    if command.proven is None and not command.proof:
        return None
    if command.proven is not None and command.acting != command.proven:
        return mismatch(command.proven, command.acting, command)
    task = None if isinstance(command, c.Create) else records.look(command.task_id)
    if task is None or command.run is None:
        return None
    lease = lease_of(task, command.run)
    if lease is not None and command.proven not in (None, lease.agent):
        return mismatch(str(command.proven), lease.agent, command)
    if not command.proof or isinstance(command, c.OwnRule | c.Complete):
        return None  # their own rules check the lease, and recognise a repeated report
    return unproven(task, lease, command) if lease is not None else over(task.id, command.run)


def lease_of(task: Task, run: str) -> Lease | None:
    """The lease of that run: the task's own, or a hop's."""
    if not task.gated:
        return task.lease if task.lease is not None and task.lease.run_id == run else None

    return next((lease for lease in workflow.leases(task) if lease.run_id == run), None)
