"""Leases: who may write to a running task, how one is taken, kept and given back.

Progress and delivery, reported under one. Must not know hops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from aof.errors import AlreadyClaimed, AofError, Call, HandedOver, InvalidInput, NotLeaseHolder, RunRequired, StaleLease
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import (
    Claim,
    Decision,
    OnTask,
    RecordDelivery,
    RecordHeartbeat,
    Records,
    Release,
    ReportProgress,
    Verdict,
)
from aof.kernel.events import DELEGATED, Draft
from aof.kernel.limits import REASON, names, text
from aof.kernel.model import FAILED, iso, run_id
from aof.runs.authentication import contested, kept_for, same_call, unprovable, unproven
from aof.runs.model import PULL, Heartbeat, lease_end
from aof.tasks import graph
from aof.tasks import rules as tasks_rules
from aof.tasks.fields import bad_ttl
from aof.tasks.model import Lease, Task
from aof.tasks.rules import close_run, transition

WAITS = "waitsForChildren"
WAITS_FOR_CHILDREN = "waits_for_children"
LONGEST_TTL_MS = 24 * 3_600_000
BEATS_PER_LEASE = 3  # heartbeats that a host sends per lease, so that one of them may be late


def not_taken_by(task: Task, agent: str) -> HandedOver | None:
    """The refusal of a run by an agent that has not accepted the task; None where nothing was handed over."""
    moving = [one for one in task.handoffs if one.moves]
    if not moving or any(one.to_agent == agent and one.state == "accepted" for one in moving):
        return None
    asked = next((one for one in moving if one.to_agent == agent), None)
    if asked is not None:
        return HandedOver(
            f"{task.id} was handed to {agent}, who has not accepted it",
            "accept the handoff first",
            Call("handoff_accept", {"handoff_id": asked.id, "agent": agent}),
            handoff_id=asked.id,
        )
    first = moving[0]
    return HandedOver(
        f"{task.id} was handed to {first.to_agent} by {first.from_agent}",
        f"leave it to {first.to_agent}, or let {first.from_agent} withdraw the handoff",
        Call("handoff_show", {"handoff_id": first.id}),
        handoff_id=first.id,
    )


def authorize(task: Task, command: OnTask) -> str | AofError:
    """The agent that a worker's write counts for, or why the caller may not write."""
    lease = task.lease
    if command.run is not None and (lease is None or lease.run_id != command.run):
        return stale_lease(task, command.run)
    if lease is None:
        what = f"{task.id} is {graph.stands(task)}: nobody is running it"
        return StaleLease(what, *graph.way_on(task, command.acting), status=task.status)
    refusal = _not_recognised(task, lease, command) if command.run is None else None
    if refusal := refusal or unproven(task, lease, command):
        return refusal
    return lease.agent if task.cancel is None else stale_lease(task, lease.run_id)


def _not_recognised(task: Task, lease: Lease, command: OnTask) -> AofError | None:
    """Without a run, only a name stands for the holder; it must be the right one and mean one run only.

    A caller that keeps its claim over sessions has chosen that its name means this run.
    """
    acting = command.acting
    if lease.contested and not command.proof and command.vouched != "token":
        return contested(task, lease)
    if kept_for(lease, command.actor) and command.agent in (None, lease.agent):
        return None
    if acting != lease.agent:
        return not_holder(task, lease, acting)
    if acting in task.retry.agents:
        return RunRequired(
            f"{lease.agent} has had an earlier run of {task.id} and must name the run it acts for",
            "name the run that the claim returned",
            same_call(command, lease.run_id),
        )
    return None


def not_holder(task: Task, lease: Lease, acting: str) -> NotLeaseHolder:
    """The refusal for somebody else than the holder."""
    return NotLeaseHolder(
        f"{task.id} is held by {lease.agent}, not by {acting}",
        f"leave it to {lease.agent}, whose lease lasts until {lease.expires_at}",
        Call("show", {"task_id": task.id}),
        holder=lease.agent,
    )


def stale_lease(task: Task, run: str) -> StaleLease:
    """The refusal for a run that was replaced, ended or cancelled."""
    lease = task.lease
    if lease is None:
        why = f"it is {graph.stands(task)}"
    elif lease.run_id == run:
        why = "it is being cancelled"
    else:
        why = f"it is now held by {lease.agent} under epoch {lease.epoch}"
    return StaleLease(
        f"run {run[:80]} no longer holds {task.id}: {why}",
        "stop this work; what it did later is not recorded",
        Call("show", {"task_id": task.id}),
        run_id=run[:80],
    )


def claim(records: Records, command: Claim, now: int) -> Verdict:
    """Take a task that can be run: one commit of status, lease and run."""
    task = records.task(command.task_id)
    if problem := kernel_limits.line("key", command.key, kernel_limits.ITEM) or unprovable(command):
        return problem
    if task.lease is not None:
        if claims_again(task.lease, command):
            return Decision(replayed=task.id, agent=task.lease.agent)
        return already_claimed(records, command, task.id, task.id, task.lease, now)
    if refusal := graph.readiness(records, task, now):
        return refusal
    verdict = start(
        records,
        task,
        command.acting,
        now,
        ttl_ms=command.ttl_ms,
        worker=command.worker,
        secret_digest=command.secret_digest,
        kept_by=command.actor if command.keep else None,
    )
    if isinstance(verdict, AofError):
        return verdict
    if command.key is not None:
        verdict.drafts[-1].payload["key"] = command.key
    stolen = command.steal and task.routing.agent not in (None, command.acting)
    return (
        verdict if not stolen else msgspec.structs.replace(verdict, drafts=(_assigned(task, command), *verdict.drafts))
    )


def _assigned(task: Task, command: Claim) -> Draft:
    """The task is the claimant's from now on, also after this run."""
    routing = msgspec.to_builtins(task.routing) | {"agent": command.acting}
    return Draft(type="task.updated", task_id=task.id, payload={"changes": {"routing": routing}, "fields": ["routing"]})


def claims_again(lease: Lease, command: Claim) -> bool:
    """Whether the claimant holds this lease, beyond doubt: by the claim's key, its own run, or a kept claim."""
    if lease.agent != command.acting:
        return False
    by_key = command.key is not None and lease.key == command.key
    return by_key or lease.run_id == command.run or kept_for(lease, command.actor)


def already_claimed(  # noqa: PLR0917 - what is held, where, and by whom
    records: Records, command: OnTask, what: str, place: str, lease: Lease, now: int
) -> AlreadyClaimed:
    """The refusal of a second claim. One that has the holder's name is told the run: it may be a second worker.

    For the case that the holder's worker is dead, the hint also ends its run, as far as the caller may.
    """
    acting, details = command.acting, {"holder": lease.agent, "run_id": lease.run_id, "expires_at": lease.expires_at}
    if lease.agent == acting:
        refusal = AlreadyClaimed(
            f"{what} is already claimed by {lease.agent}: you hold it as {lease.run_id}",
            "go on with that run if it is yours; it may be another worker's of the same name",
            Call("complete", {"task_id": command.task_id, "run": lease.run_id, "summary": "…"}),
            **details,
        )
    else:
        call = Call("claim", {"agent": acting})
        refusal = AlreadyClaimed(f"{what} is already claimed by {lease.agent}", "take another one", call, **details)
    if (beat := records.heartbeats.get(place)) is not None and (end := lease_end(lease, beat)) <= now:
        refusal.details["ended_at"] = iso(end)
        refusal.otherwise = ("its lease has ended, so recover it first", Call("recover", {}))
    elif _may_release(records, command, lease):
        refusal.otherwise = _way_to_end(command.task_id, lease)
    return refusal


def _way_to_end(task_id: str, lease: Lease) -> tuple[str, Call]:
    """How to give back a run whose worker does not: the run is named, so nobody ends a later one instead."""
    call = Call("release", {"task_id": task_id, "run": lease.run_id})
    return f"only if the worker of {lease.agent} is dead, end its run", call


def _may_release(records: Records, command: OnTask, lease: Lease) -> bool:
    """Whether a name is enough for the caller to give the lease back: its own, or a maintainer's."""
    named = command.proof is None and command.proven is None and not lease.contested
    return named and (command.acting == lease.agent or command.acting in records.policy.maintainers)


def start(
    records: Records,
    task: Task,
    agent: str,
    now: int,
    *,
    ttl_ms: int | None = None,
    worker: str = PULL,
    secret_digest: str | None = None,
    kept_by: str | None = None,
) -> Verdict:
    """The drafts of a new run under a new lease, whatever the status was."""
    ttl = task_ttl(records, task, agent, kept=kept_by is not None) if ttl_ms is None else ttl_ms
    if problem := names(agent=agent, worker=worker) or bad_ttl("ttl_ms", ttl) or too_long(records, agent, ttl):
        return problem
    if refusal := not_taken_by(task, agent):
        return refusal
    attempt = task.retry.attempts + 1
    run = run_id(task.id, attempt, records.run_tag)
    expires = iso(now + ttl)
    payload = {
        "agent": agent,
        "attempt": attempt,
        "epoch": attempt,
        "expiresAt": expires,
        "ttlMs": ttl,
        "worker": worker,
        "cause": task.retry.cause or ("first" if attempt == 1 else "retry"),
    }
    if secret_digest is not None:
        payload["secretDigest"] = secret_digest
    if kept_by is not None:
        payload["keptBy"] = kept_by
    first = Heartbeat(
        task_id=task.id, agent_id=agent, run_id=run, last_heartbeat=iso(now), beat_count=0, expires_at=expires
    )
    moved = transition(task, "in-progress", reason="claimed")
    started = Draft(type="task.attempt.started", task_id=task.id, run_id=run, payload=payload)
    if worker == PULL:
        return Decision(drafts=(moved, started), heartbeat=first, agent=agent)
    given = Draft(type=DELEGATED, task_id=task.id, run_id=run, payload=assigned(agent, worker))
    return Decision(drafts=(moved, given, started), heartbeat=first, agent=agent)


def assigned(agent: str, worker: str) -> dict[str, str]:
    """What is recorded of a worker that AOF starts for a task; an agent that pulls has taken it by itself."""
    return {"kind": "worker", "targetId": agent, "worker": worker}


def task_ttl(records: Records, task: Task, agent: str, *, kept: bool = False) -> int:
    """The task's own figure, as far as the agent may have it, unless a file was edited so that it is none.

    No session renews a kept lease, so it lasts for longer.
    """
    own = task.metadata.get("leaseTtlMs")
    if not isinstance(own, int) or bad_ttl("leaseTtlMs", own) is not None:
        return records.policy.kept_ttl_ms if kept else records.policy.lease_ttl_ms
    return min(own, longest_ttl(records, agent))


def longest_ttl(records: Records, agent: str) -> int:
    """How long a lease of this agent may be: a day, unless the org chart or the settings say more."""
    known = records.policy.org.by_id.get(agent) if records.policy.org is not None else None
    charted = known.max_lease_ms if known is not None else None
    return max(LONGEST_TTL_MS, records.policy.lease_ttl_ms, records.policy.kept_ttl_ms, charted or 0)


def too_long(records: Records, agent: str, ttl_ms: int) -> AofError | None:
    """Refuse a lease by which a worker that vanished would keep its task for longer than it may."""
    longest = longest_ttl(records, agent)
    if ttl_ms <= longest:
        return None
    return InvalidInput(
        f"a lease of {ttl_ms / 1000:,g} seconds is longer than {agent} may have, which is {longest / 1000:,g}",
        f"take a shorter one and renew it, or set 'maxLeaseTime' of '{agent}' in the org chart",
    )


def heartbeat(records: Records, command: RecordHeartbeat, now: int) -> Verdict:
    """A sign of life: no event, only a later end of the lease."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    if problem := bad_beat(records, command, holder):
        return problem
    return Decision(heartbeat=next_beat(records, task, now, command.ttl_ms), agent=holder)


def bad_beat(records: Records, command: RecordHeartbeat, holder: str) -> AofError | None:
    """What is wrong with the length that a sign of life asks for."""
    ttl = command.ttl_ms
    return None if ttl is None else bad_ttl("ttl_ms", ttl) or too_long(records, holder, ttl)


def next_beat(records: Records, task: Task, now: int, ttl_ms: int | None = None) -> Heartbeat | None:
    """The heartbeat that follows the last one; None for a task that nobody runs."""
    lease = task.lease
    if lease is None:
        return None
    return beat_after(records.heartbeats[task.id], lease, task.id, now, ttl_ms=ttl_ms)


def beat_after(
    last: Heartbeat | None, lease: Lease, task_id: str, now: int, *, ttl_ms: int | None, hop: str | None = None
) -> Heartbeat:
    """The lease's next sign of life; what another run has left behind does not count."""
    count = last.beat_count if last is not None and last.run_id == lease.run_id else 0
    return Heartbeat(
        task_id=task_id,
        agent_id=lease.agent,
        run_id=lease.run_id,
        last_heartbeat=iso(now),
        beat_count=count + 1,
        expires_at=iso(now + (ttl_ms or lease.ttl_ms)),
        hop=hop,
    )


def release(records: Records, command: Release, now: int) -> Verdict:
    """Give the task back; the run ends without a result, and that is not a failure."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        if isinstance(holder, NotLeaseHolder) and task.lease is not None and _may_release(records, command, task.lease):
            holder.otherwise = _way_to_end(task.id, task.lease)
        return holder
    if problem := text("reason", command.reason, REASON):
        return problem
    children = graph.awaited_children(records, command)
    closed = close_run(task, now, status="released", **how_released(children))
    closed[-1].payload.update(by_another(command, holder))
    if children:
        closed[-1].payload[WAITS] = children
    returned = tasks_rules.back_to_waiting(
        records, task, "ready", now, reason=command.reason or closed[-1].payload["cause"]
    )
    return Decision(drafts=(*closed, *returned), agent=holder)


def by_another(command: Release, holder: str) -> dict[str, str]:
    """Who gave a run back, where that was not its agent: what is recorded beside the agent."""
    return {} if command.acting.casefold() == holder.casefold() else {"by": command.acting}


def how_released(children: Sequence[str]) -> dict[str, Any]:
    """What is recorded of a run that gave its task back: at once, or until these children have ended."""
    if not children:
        return {"code": "released"}
    return {"code": WAITS_FOR_CHILDREN, "message": f"waits for {', '.join(children)}"}


_RESERVED: Final = frozenset({"workLog", "note", "blockers", "at", "runId", "hop"})
_PERCENT: Final = 100


def report_progress(records: Records, command: ReportProgress, now: int) -> Verdict:
    """Append progress to the current run; it is a sign of life too."""
    task = records.task(command.task_id)
    holder = authorize(task, command)
    if isinstance(holder, AofError):
        return holder
    draft = progress_of(task, command, holder, task.lease.run_id if task.lease else None)
    if isinstance(draft, AofError):
        return draft
    return Decision(drafts=(draft,), heartbeat=next_beat(records, task, now), agent=holder)


def progress_of(task: Task, command: ReportProgress, agent: str, run: str | None) -> Draft | AofError:
    """The event of a run's progress, or what is wrong with it."""
    given = (("text", command.text), ("percent", command.percent), ("phase", command.phase))
    payload: dict[str, Any] = command.facts | {name: value for name, value in given if value is not None}
    parts = (("Progress", command.text), ("Notes", command.note), ("Blockers", "; ".join(command.blockers)))
    said = " | ".join(f"{label}: {value}" for label, value in parts if value)
    if problem := _bad_report(task, command, payload) or (None if payload or said else _silence(task)):
        return problem
    if said:
        payload["workLog"] = f"{agent}: {said}"
    return Draft(type="task.progress", task_id=task.id, run_id=run, payload=payload)


def _bad_report(task: Task, command: ReportProgress, payload: dict[str, Any]) -> AofError | None:
    if taken := sorted(_RESERVED & command.facts.keys()):
        return InvalidInput(f"{', '.join(taken)} cannot be reported as a fact", "use another name for it")
    if command.percent is not None and not 0 <= command.percent <= _PERCENT:
        return InvalidInput(f"percent {command.percent} is not between 0 and 100", "give a number from 0 to 100")
    return (
        kernel_limits.text("text", command.text, kernel_limits.PROGRESS)
        or kernel_limits.text("note", command.note, kernel_limits.NOTES)
        or kernel_limits.line("phase", command.phase, kernel_limits.ITEM)
        or kernel_limits.items("blockers", command.blockers, kernel_limits.BLOCKERS)
        or kernel_limits.data("progress", task.progress | payload, kernel_limits.PROGRESS_BYTES)
    )


def _silence(task: Task) -> InvalidInput:
    return InvalidInput(
        "there is nothing to report",
        "give a text, a percentage, a phase, a note or a blocker",
        Call("progress", {"task_id": task.id, "text": "…"}),
    )


STATES: Final = ("pending", "queued", "delivered", "failed")
EVENT: Final = "task.delivery.updated"


def record_delivery(records: Records, command: RecordDelivery, _now: int) -> Verdict:
    """Put the state on record; of a running task only its holder may. The same again changes nothing."""
    task = records.task(command.task_id)
    problem = (
        kernel_limits.choice("state", command.state, STATES)
        or kernel_limits.line("target", command.target, kernel_limits.ITEM)
        or kernel_limits.text("reason", command.reason, kernel_limits.REASON)
    )
    if problem:
        return problem
    holder = authorize(task, command) if task.lease is not None else None
    if isinstance(holder, AofError):
        return holder
    draft = _draft(task, command.state, command.target or task.delivery.get("targetId"), command.reason)
    return Decision(drafts=(draft,) if draft is not None else (), agent=holder)


def _draft(task: Task, state: str, target: str | None, reason: str | None) -> Draft | None:
    said: dict[str, Any] = {"state": state, "targetId": target, "reason": reason}
    payload = {name: value for name, value in said.items() if value}
    known = {name: value for name, value in task.delivery.items() if name != "at"}
    return None if payload == known else Draft(type=EVENT, task_id=task.id, payload=payload)


def to_parent(records: Records, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
    """The drafts, and for each child that is done now, whether its parent has the output."""
    found: list[Draft] = []
    for draft in drafts:
        found.append(draft)
        task = records.tasks.get(draft.task_id) if draft.type == "task.transitioned" else None
        if task is not None and task.parent_id is not None and draft.payload["to"] == "done":
            told = _told(records, task, task.parent_id)
            found += [told] if told is not None else []
    return tuple(found)


def _told(records: Records, task: Task, parent_id: str) -> Draft | None:
    if task.delivery.get("targetId", parent_id) != parent_id or parent_id not in records.tasks:
        return None  # it goes elsewhere, or nobody has looked
    parent = records.tasks[parent_id]
    if parent is None:
        return _draft(task, "parent_missing", parent_id, None)
    if parent.status in FAILED:
        return _draft(task, "failed", parent_id, f"{parent_id} is {parent.status}")
    return _draft(task, "delivered", parent_id, None)
