"""Where autonomy is enforced: what an agent may read, write, run and reach, and how much one run may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

import msgspec

from aof.errors import AofError, BudgetExceeded, Call
from aof.kernel import limits
from aof.kernel.commands import Decision, OnTask, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.limits import covers, normalised
from aof.kernel.model import millis
from aof.org import rights
from aof.org.model import Agent, Autonomy
from aof.org.routing import limits_of
from aof.runs.model import RunResult
from aof.tasks.model import Lease, Task
from aof.workflows.model import held_leases, leases

Access = Literal["read", "write", "command", "network"]
ACCESSES: Final[tuple[Access, ...]] = ("read", "write", "command", "network")
# The least level that may do it at all, where the chart lists nothing for it.
LEAST_LEVEL: Final[dict[Access, int]] = {"read": 0, "write": 1, "command": 2, "network": 3}
_OURS: Final = (".aof", ".git")  # written only by AOF and by git
_CREDENTIALS: Final = frozenset({"169.254.169.254", "fd00:ec2::254", "metadata.google.internal"})
_LONGEST: Final = 4_096  # characters of a path, command or host
_MINUTE: Final = 60_000
Point = Literal["read", "write", "command", "network", "iterations", "duration", "files", "lines"]
POINTS: Final[tuple[Point, ...]] = (*ACCESSES, "iterations", "duration", "files", "lines")
Outcome = Literal["proceed", "blocked", "proceed_with_warnings"]
Stage = Literal["security", "explicit_deny", "explicit_allow", "limits", "default_deny", "undeclared"]
_FIGURES: Final = {"iterations": "iterations", "duration": "minutes", "files": "files", "lines": "lines"}
_NEARLY: Final = 0.8


class AskedAction(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is about to do: `subject` is a path, command or host; `amount` what it will have used in all."""

    point: Point
    subject: str | None = None
    amount: int | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the agent may, which stage decided, and why."""

    outcome: Outcome
    point: str
    stage: Stage
    reason: str
    warnings: tuple[str, ...] = ()


def ruling(agent: Agent, action: AskedAction, *, tool_calls: int = 0, unlocked: str | None = None) -> Ruling:
    """The ruling on one action. `tool_calls` are those so far; `unlocked` says which lock a write lacks."""
    for access in ACCESSES:
        if access == action.point:
            return _access(agent, access, action.subject or "", tool_calls, unlocked)
    if agent.autonomy == Autonomy():
        return _undeclared(agent, action.point)
    figure = _FIGURES[action.point]
    return _within(agent, action.point, figure, action.amount or 0, getattr(limits_of(agent), figure))


def _access(agent: Agent, access: Access, subject: str, tool_calls: int, unlocked: str | None) -> Ruling:
    autonomy = agent.autonomy
    why = unsafe(access, subject) or unlocked
    if why is not None:
        return _ruled(access, "blocked", "security", why)
    if autonomy == Autonomy():
        return _undeclared(agent, access)
    if (pattern := _match(getattr(autonomy.deny, access), access, subject)) is not None:
        return _ruled(access, "blocked", "explicit_deny", f"the chart denies {agent.id} '{pattern}'")
    allowed: tuple[str, ...] = getattr(autonomy.allow, access)
    if (pattern := _match(allowed, access, subject)) is not None:
        return _ruled(access, "proceed", "explicit_allow", f"the chart allows {agent.id} '{pattern}'")
    # The level alone allows it, but not where the chart lists what is allowed.
    if allowed or autonomy.level is None or autonomy.level < LEAST_LEVEL[access]:
        reason = f"nothing in the chart lets {agent.id} {access} this"
        return _ruled(access, "blocked", "default_deny", reason)
    return _within(agent, access, "tool calls", tool_calls + 1, limits_of(agent).tool_calls)


def _within(agent: Agent, point: str, what: str, amount: int, most: int | None) -> Ruling:
    if most is None:
        return _ruled(point, "proceed", "limits", f"{agent.id} has no limit on {what}")
    reason = f"{agent.id} would use {amount:,} of the {most:,} {what} that it may use"
    if amount > most:
        return _ruled(point, "blocked", "limits", reason)
    if amount >= most * _NEARLY and amount:
        return _ruled(point, "proceed_with_warnings", "limits", reason, (f"nearly at the limit: {reason}",))
    return _ruled(point, "proceed", "limits", reason)


def _undeclared(agent: Agent, point: str) -> Ruling:
    return _ruled(point, "proceed", "undeclared", f"the chart sets no limits for {agent.id}")


def _ruled(point: str, outcome: Outcome, stage: Stage, reason: str, warnings: tuple[str, ...] = ()) -> Ruling:
    return Ruling(outcome=outcome, point=point, stage=stage, reason=reason, warnings=warnings)


def ruling_payload(ruled: Ruling, agent: str, action: AskedAction) -> dict[str, Any]:
    """A ruling as its event records it."""
    given = {"subject": action.subject, "amount": action.amount}
    whole: dict[str, Any] = msgspec.to_builtins(ruled)
    return {"agent": agent} | {name: one for name, one in given.items() if one is not None} | whole


def unsafe(access: Access, subject: str) -> str | None:
    """Why no agent may do this, whatever its chart says."""
    if problem := limits.line("subject", subject, _LONGEST, required=True):
        return problem.message
    if access in ("read", "write"):
        path = normalised("subject", subject)
        if isinstance(path, AofError):
            return path.message
        folder = next((one for one in _OURS if covers(one, path) or path == "."), None) if access == "write" else None
        return f"'{path[:80]}' belongs to {folder}, which agents do not write to directly" if folder else None
    if access == "network" and host_of(subject) in _CREDENTIALS:
        return f"'{host_of(subject)}' gives out the machine's own credentials"
    return None


def host_of(subject: str) -> str:
    """The host of an address or URL, in lower case."""
    rest = subject.partition("://")[2] or subject
    host = rest.partition("/")[0].rpartition("@")[2]
    return host.partition("]")[0].lstrip("[").lower() if host.startswith("[") else host.partition(":")[0].lower()


def _match(patterns: tuple[str, ...], access: Access, subject: str) -> str | None:
    """The first pattern that fits; one that names a folder also means what is below it."""
    forms = {subject}
    if access in ("read", "write"):
        forms = {str(normalised("subject", subject))}
    elif access == "network":
        forms |= {host_of(subject)}
    return next((pattern for pattern in patterns if any(_fits(form, pattern) for form in forms)), None)


def _fits(form: str, pattern: str) -> bool:
    folder = pattern.rstrip("/")
    return fnmatchcase(form, pattern) or fnmatchcase(form, f"{folder}/*") or (pattern == "**" and bool(form))


def iterations(task: Task) -> int:
    """How often the task was run so far; of a gated one, the hop that was run most often."""
    hops = [hop.get("epoch", 0) for hop in task.workflow.get("hops", ())]
    return max(hops, default=task.retry.attempts)


def one_run_too_many(agent: Agent, task: Task) -> BudgetExceeded | None:
    """The refusal of a claim that would be one iteration more than the agent may have."""
    ruled = ruling(agent, AskedAction(point="iterations", amount=iterations(task) + 1))
    return exceeded(task, agent, ruled) if ruled.outcome == "blocked" else None


def measured(agent: Agent) -> bool:
    """Whether the agent has a limit that is measured in files."""
    limits = limits_of(agent)
    return limits.files is not None or limits.lines is not None


def too_large(
    records: Records, task: Task, agent: Agent, lease: Lease | None, deliverables: Iterable[str]
) -> Ruling | None:
    """The ruling that blocks work for its files or their lines."""
    refs = frozenset(deliverables)
    sizes = [records.sizes.get((task.id, ref), (1, 0)) for ref in refs]
    run = lease.run_id if lease is not None else None
    locked = {lock.path for lock in task.locks if lock.run_id == run and lock.mode == "exclusive"}
    used: dict[Point, int] = {
        "files": sum(files for files, _ in sizes) + len(locked - refs),
        "lines": sum(lines for _, lines in sizes),
    }
    rulings = (ruling(agent, AskedAction(point=point, amount=amount)) for point, amount in used.items())
    return next((one for one in rulings if one.outcome == "blocked"), None)


def exceeded(task: Task, agent: Agent, ruled: Ruling) -> BudgetExceeded:
    """The refusal, with the point at which it was enforced."""
    return BudgetExceeded(
        f"{ruled.reason} ({ruled.point})",
        "report it as blocked, so that a person decides, or let a lead raise the agent's limits in the org chart",
        Call("complete", {"task_id": task.id, "outcome": "blocked", "blockers": [f"over budget: {ruled.point}"]}),
        agent=agent.id,
        point=ruled.point,
    )


def denied(agent: Agent, ruled: Ruling) -> BudgetExceeded:
    """The refusal of a step that the agent may not make."""
    return BudgetExceeded(
        f"{agent.id} may not do this: {ruled.reason} ({ruled.point}, {ruled.stage})",
        "escalate it, or let a lead change the agent's autonomy in the org chart",
        Call("org_show", {}),
        agent=agent.id,
        point=ruled.point,
        stage=ruled.stage,
    )


def entry(records: Records, name: str) -> Agent:
    """What the chart says of an agent; nothing limits one that no chart binds."""
    return _charted(records, name) or Agent(id=name)


def _charted(records: Records, name: str) -> Agent | None:
    chart = records.policy.org
    return None if chart is None else rights.entry_of(chart, name, records.policy.maintainers)


def sizes(
    known: Records, task: Task | None, report: OnTask, deliverables: tuple[str, ...]
) -> frozenset[tuple[str, str]]:
    """The deliverables of a report that must be measured, where the agent has a limit on them."""
    agent, _ = _reporter(known, task, report)
    if agent is None or not measured(agent):
        return frozenset()
    safe = (ref for ref in deliverables if isinstance(normalised("deliverables", ref), str))
    return frozenset((report.task_id, ref) for ref in safe)


def judged(
    records: Records,
    report: OnTask,
    verdict: Verdict,
    now: int,
    *,
    outcome: str | None,
    deliverables: tuple[str, ...],
) -> Decision | None:
    """What refuses and records a report of more work than the agent may do by itself; None where it may.

    `verdict` is what would become of the report: only one that is accepted, and changes something, is judged.
    """
    task = records.find(report.task_id)
    accepted = isinstance(verdict, Decision) and verdict.drafts and verdict.refusal is None
    if task is None or not accepted or outcome == "blocked" or task.status not in ("ready", "in-progress"):
        return None
    agent, lease = _reporter(records, task, report)
    if agent is None or (task.status == "in-progress" and lease is None):
        return None
    took = -(-(now - millis(lease.acquired_at)) // _MINUTE) if lease is not None else 0
    late = ruling(agent, AskedAction(point="duration", amount=took))
    ruled = late if late.outcome == "blocked" else too_large(records, task, agent, lease, deliverables)
    if ruled is None:
        return None
    payload = ruling_payload(ruled, agent.id, AskedAction(point="files"))
    run = lease.run_id if lease is not None else None
    recorded = Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload)
    return Decision(drafts=(recorded,), agent=agent.id, refusal=exceeded(task, agent, ruled))


def _reporter(records: Records, task: Task | None, report: OnTask) -> tuple[Agent | None, Lease | None]:
    """The agent that a report comes from, as the chart knows it, and its lease: that of the run which it names."""
    held = leases(task) if task is not None else ()
    named = report.run is not None
    lease = next((one for one in held if (one.run_id == report.run if named else one.agent == report.acting)), None)
    return _charted(records, lease.agent if lease is not None else report.acting), lease


class Limited(msgspec.Struct, frozen=True):
    """The records with each result over budget as a blocked one, and the rulings to record, by run."""

    records: Records
    rulings: dict[str, Draft] = {}

    def recorded(self, verdict: Verdict) -> Verdict:
        """The decision, with each ruling before the event that ends its run."""
        if not self.rulings or not isinstance(verdict, Decision):
            return verdict
        drafts: list[Draft] = []
        for draft in verdict.drafts:
            if draft.type == "task.attempt.completed" and draft.run_id in self.rulings:
                drafts.append(self.rulings[draft.run_id])
            drafts.append(draft)
        return msgspec.structs.replace(verdict, drafts=tuple(drafts))


def limited(records: Records, task_id: str) -> Limited:
    """The results of a task's runs, where those that are more than their agents may do count as blocked."""
    task = records.find(task_id)
    rulings: dict[str, Draft] = {}
    results = dict(records.results)
    for place, agent, lease, result in _reported(records, task):
        assert task is not None
        ruled = too_large(records, task, agent, lease, result.deliverables or ())
        if ruled is None or result.outcome == "blocked":
            continue
        blockers = (f"over budget: {ruled.reason} ({ruled.point})",)
        results[place] = msgspec.structs.replace(result, outcome="blocked", blockers=blockers)
        payload = ruling_payload(ruled, agent.id, AskedAction(point="files"))
        rulings[lease.run_id] = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=payload)
    return Limited(msgspec.structs.replace(records, results=results) if rulings else records, rulings)


def sizes_of_report(known: Records, task_id: str) -> frozenset[tuple[str, str]]:
    """The deliverables of reported results that must be measured."""
    if known.policy.org is None:
        return frozenset()
    found = _reported(known, known.tasks.get(task_id))
    refs = (ref for _, agent, _, result in found if measured(agent) for ref in result.deliverables or ())
    return frozenset((task_id, ref) for ref in refs if isinstance(normalised("deliverables", ref), str))


def _reported(records: Records, task: Task | None) -> Iterator[tuple[str, Agent, Lease, RunResult]]:
    """The runs that hold the task and have reported, where the chart knows their agents."""
    chart = records.policy.org
    if chart is None or task is None:
        return
    for place, lease in held_leases(task):
        result = records.results.get(place)
        agent = rights.entry_of(chart, lease.agent, records.policy.maintainers)
        if agent is not None and isinstance(result, RunResult) and result.run_id == lease.run_id:
            yield place, agent, lease, result
