"""Who may write to the shared context, locks on files, and the preflight check before a step of a run."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import (
    AofError,
    Call,
    FileLocked,
    InvalidInput,
    LockRequired,
    NotAllowed,
    PayloadTooLarge,
    Unauthenticated,
)
from aof.handoffs.context import Writer
from aof.kernel import limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OnTask, OwnRule, Records, Verdict
from aof.kernel.events import Draft
from aof.kernel.kinds import LockMode
from aof.kernel.limits import covers, normalised, overlap
from aof.kernel.model import millis
from aof.org import routing
from aof.org.budgets import (
    ACCESSES,
    POINTS,
    AskedAction,
    Outcome,
    Point,
    Ruling,
    denied,
    entry,
    iterations,
    ruling,
    ruling_payload,
)
from aof.org.model import Agent, Risk
from aof.org.rights import is_person, kind_of, owns, roles_of
from aof.org.routing import RISKS, too_little, work_of
from aof.runs.authentication import ran_work
from aof.runs.leases import authorize
from aof.runs.model import ARTIFACT_PATHS, lease_end
from aof.tasks import graph
from aof.tasks.model import FileLock, Lease, Task
from aof.workflows import hops
from aof.workflows.model import held_leases, leases, workflow_of

_NAME = 128  # characters


def subject_task(records: Records, command: OnTask) -> Task | AofError:
    """The task that the command is about, if there is one and the caller gives usable names."""
    problem = (
        limits.line("actor", command.actor, _NAME, required=True)
        or limits.line("run", command.run, _NAME)
        or limits.name("agent", command.agent)
    )
    return problem or records.find(command.task_id) or graph.missing(command.task_id)


def holding(task: Task, command: OnTask) -> Lease | AofError:
    """The lease that the caller holds, of the task or of a hop; else the refusal that says why it holds none."""
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


MODES: Final[tuple[LockMode, ...]] = ("exclusive", "shared")
_ALL_LOCKS: Final = frozenset({"files"})  # locks are taken one after the other: a folder may cover any other path
_BYTES: Final = 6_144  # of all locks of a task, which stand in its frontmatter
_BYTES_BESIDE_NAMES: Final = 100  # of one lock: its keys, mode and time


class LockFiles(OwnRule, frozen=True, kw_only=True):
    """Lock files or folders for a run: all of them, or none."""

    paths: tuple[str, ...]
    mode: str = "exclusive"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task, and those that hold a lock in the way, with their holders' signs of life."""
        own = frozenset({self.task_id})
        wanted = normalised_all(self.paths)
        paths = () if isinstance(wanted, AofError) else wanted
        near = frozenset(
            task_id
            for task_id, locks in known.file_locks.items()
            if task_id != self.task_id and any(overlap(lock.path, path) for lock in locks for path in paths)
        )
        loaded = [task for task in map(known.tasks.get, (self.task_id, *sorted(near))) if task is not None]
        beats = frozenset(place for task in loaded for place in task.run_places)
        return Needs(write=own | near, names=_ALL_LOCKS, file_locks=True, heartbeats=beats)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Give the locks to the run, or say who has one; that is recorded too."""
        found = _of_run(records, self)
        if isinstance(found, AofError):
            return found
        task, paths, lease = found
        enough = (self.mode, "exclusive")
        held = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode in enough}
        missing = tuple(path for path in paths if path not in held)
        if not missing:
            return Decision(agent=lease.agent)
        agent = entry(records, lease.agent)
        if ruled := self._forbidden(task, missing, lease, agent):
            payload = {"agent": agent.id, "subject": missing[0], **msgspec.to_builtins(ruled)}
            checked = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=payload)
            return Decision(drafts=(checked,), agent=agent.id, refusal=denied(agent, ruled))
        if too_many := _too_many(task, missing, lease):
            return too_many
        return self._locked(records, task, missing, lease, now)

    def _forbidden(self, task: Task, missing: tuple[str, ...], lease: Lease, agent: Agent) -> Ruling | None:
        """The ruling by which the agent may not work on one of the paths in this way, or not on so many."""
        point: Point = "write" if self.mode == "exclusive" else "read"
        actions = [AskedAction(point=point, subject=path) for path in missing]
        if point == "write":
            own = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode == self.mode}
            actions.append(AskedAction(point="files", amount=len(own.union(missing))))
        rulings = (ruling(agent, action) for action in actions)
        return next((one for one in rulings if one.outcome == "blocked" and one.stage != "security"), None)

    def _locked(self, records: Records, task: Task, missing: tuple[str, ...], lease: Lease, now: int) -> Verdict:
        """The first lock in the way whose holder is alive refuses the call; the locks of the others end."""
        lost: list[Draft] = []
        for owner in sorted((one for one in records.tasks.values() if one is not None), key=lambda one: one.id):
            for lock in owner.locks:
                shared = lock.mode == self.mode == "shared"
                if shared or lock.run_id == lease.run_id or not any(overlap(lock.path, path) for path in missing):
                    continue
                if not lock_alive(records, owner, lock, now):
                    lost.append(unlocked(owner, (lock,), "holder_lost"))
                    continue
                refusal = locked_by(owner, lock, missing)
                held = {name: refusal.details[name] for name in ("path", "holder", "holder_task", "holder_run")}
                payload: dict[str, Any] = {"paths": list(self.paths), "mode": self.mode, "agent": lease.agent}
                payload |= {"reason": refusal.code, "held": held}
                refused = Draft(type="file.refused", task_id=task.id, run_id=lease.run_id, payload=payload)
                return Decision(drafts=(refused,), agent=lease.agent, refusal=refusal)
        payload = {"paths": list(missing), "mode": self.mode, "agent": lease.agent}
        locked = Draft(type="file.locked", task_id=task.id, run_id=lease.run_id, payload=payload)
        return Decision(drafts=(*lost, locked), agent=lease.agent)


class UnlockFiles(OwnRule, frozen=True, kw_only=True):
    """Give back locks of a run: those on these paths, or all; what it does not hold is left alone."""

    paths: tuple[str, ...] = ()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task only: nobody gives back another's lock."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """Drop the locks of the caller's own run."""
        found = _of_run(records, self)
        if isinstance(found, AofError):
            return found
        task, paths, lease = found
        own = tuple(lock for lock in task.locks if lock.run_id == lease.run_id and (not paths or lock.path in paths))
        return Decision(drafts=(unlocked(task, own, "released"),) if own else (), agent=lease.agent)


def _of_run(records: Records, command: LockFiles | UnlockFiles) -> tuple[Task, tuple[str, ...], Lease] | AofError:
    """The task, the paths in their one spelling, and the lease that the caller holds."""
    task = subject_task(records, command)
    if isinstance(task, AofError):
        return task
    paths = normalised_all(command.paths) if command.paths or isinstance(command, LockFiles) else ()
    if isinstance(paths, AofError):
        return paths
    bad_mode = limits.choice("lock_type", command.mode, MODES) if isinstance(command, LockFiles) else None
    lease = bad_mode or holding(task, command)
    return lease if isinstance(lease, AofError) else (task, paths, lease)


def normalised_all(paths: tuple[str, ...]) -> tuple[str, ...] | AofError:
    """The paths, each normalised and listed once."""
    if not paths:
        return InvalidInput("'paths' must name at least one file", "name what the run will write, such as src/api.py")
    if len(paths) > limits.ITEMS:
        return PayloadTooLarge(f"'paths' has {len(paths)} items, the limit is {limits.ITEMS}", "lock their folder")
    found: dict[str, None] = {}
    for path in paths:
        one = normalised("paths", path)
        if isinstance(one, AofError):
            return one
        found[one] = None
    return tuple(found)


def _too_many(task: Task, paths: tuple[str, ...], lease: Lease) -> PayloadTooLarge | None:
    locks = [(lock.path, lock.agent, lock.run_id) for lock in task.locks]
    locks += [(path, lease.agent, lease.run_id) for path in paths]
    size = sum(len(path.encode()) + len(agent) + len(run) + _BYTES_BESIDE_NAMES for path, agent, run in locks)
    if size <= _BYTES:
        return None
    return PayloadTooLarge(f"{task.id} would hold too many locks", "lock the folder that they are in instead")


def lock_alive(records: Records, owner: Task, lock: FileLock, now: int) -> bool:
    """Whether the run that holds the lock still has its lease, by its last sign of life."""
    for place, lease in held_leases(owner):
        if lease.run_id == lock.run_id:
            return lease_end(lease, records.heartbeats[place]) > now
    return False


def unlocked(owner: Task, locks: tuple[FileLock, ...], reason: str) -> Draft:
    """The event that releases locks of one run."""
    payload = {"paths": [lock.path for lock in locks], "agent": locks[0].agent, "reason": reason}
    return Draft(type="file.unlocked", task_id=owner.id, run_id=locks[0].run_id, payload=payload)


def locked_by(owner: Task, lock: FileLock, paths: tuple[str, ...]) -> FileLocked:
    """The refusal that names who holds which lock, and since when."""
    path = next(path for path in paths if overlap(lock.path, path))
    what = f"'{path[:80]}' is locked" if path == lock.path else f"'{path[:80]}' overlaps '{lock.path[:80]}', locked"
    return FileLocked(
        f"{what} ({lock.mode}) by {lock.agent} since {lock.since}, for run {lock.run_id} of {owner.id}",
        "work on something else until it is released, or hand the change over to its holder",
        Call("locks", {"path": path}),
        path=lock.path,
        mode=lock.mode,
        holder=lock.agent,
        holder_task=owner.id,
        holder_run=lock.run_id,
        since=lock.since,
    )


def lock_missing(task: Task, run: str, path: str) -> LockRequired | None:
    """The refusal of a write to a path on which, or on a folder above which, the run has no exclusive lock."""
    if any(lock.run_id == run and lock.mode == "exclusive" and covers(lock.path, path) for lock in task.locks):
        return None
    return LockRequired(
        f"'{path[:80]}' may be written only under an exclusive lock, and the run of {task.id} holds none on it",
        "lock it first",
        Call("lock", {"path": path, "task_id": task.id}),
        path=path,
    )


def listed_lock(owner: Task, lock: FileLock, *, lost: bool = False) -> dict[str, Any]:
    """A lock as lists show it."""
    return {
        "path": lock.path,
        "lockType": lock.mode,
        "owner": lock.agent,
        "taskId": owner.id,
        "runId": lock.run_id,
        "since": lock.since,
        "state": "lost" if lost else "held",
    }


_START: Final = "start"
_MINUTE: Final = 60_000
_MOST: Final = 2**53


class Preflight(OwnRule, frozen=True, kw_only=True):
    """Ask whether the acting agent may begin the task, or whether its run may go on at one enforcement point."""

    point: str | None = None
    subject: str | None = None
    amount: int | None = None
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:
        """The task: the answer is recorded on it."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:
        """The ruling as an event; one that blocks is an answer, too, and no refusal."""
        task = subject_task(records, self)
        if isinstance(task, AofError):
            return task
        if problem := self._malformed(task):
            return problem
        risk: Risk | None = next((known for known in RISKS if known == self.risk), None)
        if self.point is None:
            asked = AskedAction(point="iterations")
            return _answer(task, self.acting, None, asked, _before_work(records, task, self.acting, risk))
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        agent = entry(records, lease.agent)
        asked = AskedAction(point=self.point, subject=self.subject, amount=self._amount(task, lease, now))  # type: ignore[arg-type] # judged above
        why = too_little(agent, level=None, risk=risk)
        if why is not None:
            reason = f"{agent.id}: {why}; escalate it"
            ruled = Ruling(outcome="blocked", point=self.point, stage="limits", reason=reason)
        else:
            used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == lease.run_id else 0
            ruled = ruling(agent, asked, tool_calls=int(used), unlocked=self._lacks_lock(task, lease))
        return _answer(task, lease.agent, lease.run_id, asked, ruled)

    def _malformed(self, task: Task) -> AofError | None:
        if self.point is not None and (problem := limits.choice("point", self.point, POINTS)):
            return problem
        if self.risk is not None and (problem := limits.choice("risk", self.risk, RISKS)):
            return problem
        if self.amount is not None and not 0 <= self.amount <= _MOST:
            return InvalidInput("'amount' must be a whole number from 0 up", "say how much will have been used in all")
        if self.point in ACCESSES and self.subject is None:
            return InvalidInput(
                f"'{self.point}' needs a subject: a path, a command or a host",
                "say what it is about",
                Call("preflight", {"task_id": task.id, "point": self.point, "subject": "src/api.py"}),
            )
        return limits.text("subject", self.subject, limits.NOTES)

    def _amount(self, task: Task, lease: Lease, now: int) -> int | None:
        """What the caller says, or what AOF knows if that is more."""
        if self.point == "iterations":
            known = iterations(task)
        elif self.point == "duration":
            known = -(-(now - millis(lease.acquired_at)) // _MINUTE)
        else:
            return self.amount
        return max(known, self.amount or 0)

    def _lacks_lock(self, task: Task, lease: Lease) -> str | None:
        """Why the run may not write the path now; what lies in the task's own folder needs no lock."""
        if self.point != "write" or self.subject is None or self.subject.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("subject", self.subject)
        refusal = None if isinstance(path, AofError) else lock_missing(task, lease.run_id, path)
        return refusal.message if refusal is not None else None


def _before_work(records: Records, task: Task, name: str, risk: Risk | None) -> Ruling:
    """Whether the agent may take the task: what a claim would refuse, and what it should know beforehand."""
    chart, agent = records.policy.org, entry(records, name)
    work = work_of(task.routing, task.profile)
    why = routing.routing_refusal(chart, work, name) if chart is not None and name in chart.by_id else None
    why = why or too_little(agent, level=work.level, risk=risk or work.risk)
    if not agent.active:
        why = "it is not active"
    if why is not None:
        return Ruling(outcome="blocked", point=_START, stage="limits", reason=f"{name} may not take {task.id}: {why}")
    ruled = ruling(agent, AskedAction(point="iterations", amount=iterations(task) + 1))
    if ruled.outcome == "blocked":
        return Ruling(outcome="blocked", point=_START, stage=ruled.stage, reason=ruled.reason)
    warnings = list(ruled.warnings)
    if task.retry.failures and task.retry.failures + 1 >= task.retry.max_attempts:
        warnings.append(f"it is the last attempt: {task.retry.failures} have failed")
    if task.status != "ready":
        warnings.append(f"{task.id} is {task.status} now")
    outcome: Outcome = "proceed_with_warnings" if warnings else "proceed"
    return Ruling(outcome=outcome, point=_START, stage=ruled.stage, reason=ruled.reason, warnings=tuple(warnings))


def _answer(task: Task, agent: str, run: str | None, asked: AskedAction, ruled: Ruling) -> Decision:
    payload = ruling_payload(ruled, agent, asked)
    return Decision(drafts=(Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload),), agent=agent)
