"""What guards shared work.

Whom a write counts for, locks on files, writes to the context, and the check before each step.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from aof.errors import (
    AofError,
    Call,
    FileLocked,
    InvalidInput,
    InvalidTransition,
    LockRequired,
    NotAllowed,
    PayloadTooLarge,
    Unauthenticated,
)
from aof.handoffs.context import (
    ARTIFACT_STATUSES,
    ARTIFACT_TYPES,
    CONFLICT_RULES,
    Artifact,
    RecordedArtifact,
    Write,
    Writer,
    context_of,
    oversize,
    reference,
    top_of,
    write,
)
from aof.kernel import limits as kernel_limits
from aof.kernel.commands import Decide, Decision, Needs, NeedsOf, OnTask, OwnRule, Records, Verdict
from aof.kernel.limits import bad_reference, covers, is_uri, normalised, overlap
from aof.kernel.model import Draft, LockMode, iso, millis
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
    told,
)
from aof.org.model import Agent, Risk
from aof.org.rights import is_person, kind_of, owns, roles_of
from aof.org.routing import RISKS, too_little, work_of
from aof.runs.authentication import ran_work
from aof.runs.leases import authorize
from aof.runs.model import ARTIFACT_PATHS, lease_end
from aof.support.hashing import hexdigest
from aof.tasks import graph
from aof.tasks.model import FileLock, Lease, Task
from aof.workflows import hops
from aof.workflows.model import held_leases, leases, workflow_of

_AUTHOR_NAME = 128


def subject_task(records: Records, command: OnTask) -> Task | AofError:
    """The task that the command is about, if there is one and the caller gives usable names."""
    problem = kernel_limits.line("actor", command.actor, _AUTHOR_NAME, required=True) or kernel_limits.line(
        "run", command.run, _AUTHOR_NAME
    )
    if problem or (problem := kernel_limits.name("agent", command.agent)):
        return problem
    task = records.look(command.task_id)
    return graph.missing(command.task_id) if task is None else task


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
    """The agent that takes part in the workflow, with what it may write; else why it may not write at all."""
    agent = command.acting
    if command.run is not None or any(lease.agent == agent for lease in leases(task)):
        lease = holding(task, command)
        if isinstance(lease, AofError):
            return lease
        return writer_of(records, lease.agent)
    if refusal := _unproven(records, task, command) or _stranger(records, task, agent):
        return refusal
    return writer_of(records, agent)


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


def _unproven(records: Records, task: Task, command: OnTask) -> Unauthenticated | None:
    """Why a name is not enough, where secrets are asked for."""
    trusted = {command.actor, command.session or command.actor} <= set(records.policy.maintainers)
    if not records.policy.require_secret or not command.outside or command.vouched is not None or trusted:
        return None
    return Unauthenticated(
        f"a write to the context of {task.id} must come from a caller that has proven who it is",
        "send a token over HTTP, or the secret of a run of your own that is under way",
        Call("show", {"task_id": task.id}),
    )


def _stranger(records: Records, task: Task, agent: str) -> NotAllowed | None:
    """With a chart, only the agents of the workflow write to its context, and those who steer it."""
    chart, maintainers = records.policy.org, records.policy.maintainers
    if chart is None or is_person(chart, agent, maintainers) or writer_of(records, agent).steers:
        return None
    tree = [one for one in records.tasks.values() if one is not None]
    if any(owns(one, agent) or ran_work(one, agent) for one in tree):
        return None
    return NotAllowed(
        f"{agent} takes no part in the workflow of {task.id} and may not write to its context",
        "claim a task of it first, or let one of its agents write",
        Call("claim", {"task_id": task.id, "agent": agent}),
        agent=agent,
    )


MODES: Final[tuple[LockMode, ...]] = ("exclusive", "shared")
_FILE_LOCKS_NAME: Final = frozenset({"files"})  # locks are taken one after the other: a folder may cover any other path
_BYTES: Final = 6_144  # of all locks of a task, which stand in its frontmatter


class LockFiles(OwnRule, frozen=True, kw_only=True):
    """Lock files or folders for a run: all of them, or none."""

    paths: tuple[str, ...]
    mode: str = "exclusive"

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task, and those that hold a lock in the way, with their holders' signs of life."""
        own = frozenset({self.task_id})
        wanted = normalised_all(self.paths)
        found = () if isinstance(wanted, AofError) else wanted
        near = frozenset(
            task_id
            for task_id, locks in known.file_locks.items()
            if task_id != self.task_id and any(overlap(lock.path, path) for lock in locks for path in found)
        )
        loaded = [task for task in map(known.tasks.get, (self.task_id, *sorted(near))) if task is not None]
        beats = frozenset(place for task in loaded for place in task.run_places)
        return Needs(write=own | near, names=_FILE_LOCKS_NAME, file_locks=True, heartbeats=beats)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Give the locks to the run, or say who has one; that is recorded too."""
        task, paths = subject_task(records, self), normalised_all(self.paths)
        if isinstance(task, AofError):
            return task
        if isinstance(paths, AofError):
            return paths
        lease = kernel_limits.choice("lock_type", self.mode, MODES) or holding(task, self)
        if isinstance(lease, AofError):
            return lease
        missing = tuple(path for path in paths if not self._has(task, lease, path))
        return self._taken(records, task, missing, lease, now) if missing else Decision(agent=lease.agent)

    def _taken(self, records: Records, task: Task, missing: tuple[str, ...], lease: Lease, now: int) -> Verdict:
        agent = entry(records, lease.agent)
        if ruled := self._forbidden(task, missing, lease, agent):
            told = {"agent": agent.id, "subject": missing[0], **msgspec.to_builtins(ruled)}
            asked = Draft(type="autonomy.checked", task_id=task.id, run_id=lease.run_id, payload=told)
            return Decision(drafts=(asked,), agent=agent.id, refusal=denied(agent, ruled))
        if full := _full(task, missing, lease):
            return full
        taken, lost = self._in_the_way(records, missing, lease, now)
        if taken is not None:
            return Decision(drafts=(self._refused(task, lease, taken),), agent=lease.agent, refusal=taken)
        payload = {"paths": list(missing), "mode": self.mode, "agent": lease.agent}
        locked = Draft(type="file.locked", task_id=task.id, run_id=lease.run_id, payload=payload)
        return Decision(drafts=(*lost, locked), agent=lease.agent)

    def _forbidden(self, task: Task, missing: tuple[str, ...], lease: Lease, agent: Agent) -> Ruling | None:
        """The ruling by which the agent may not work on one of the paths in this way, or not on so many."""
        point: Point = "write" if self.mode == "exclusive" else "read"
        asked = [AskedAction(point=point, subject=path) for path in missing]
        if point == "write":
            own = {lock.path for lock in task.locks if lock.run_id == lease.run_id and lock.mode == self.mode}
            asked.append(AskedAction(point="files", amount=len(own.union(missing))))
        rulings = (ruling(agent, one) for one in asked)
        return next((one for one in rulings if one.outcome == "blocked" and one.stage != "security"), None)

    def _has(self, task: Task, lease: Lease, path: str) -> bool:
        enough = (self.mode, "exclusive")
        return any(lock.run_id == lease.run_id and lock.path == path and lock.mode in enough for lock in task.locks)

    def _in_the_way(
        self, records: Records, paths: tuple[str, ...], lease: Lease, now: int
    ) -> tuple[FileLocked | None, tuple[Draft, ...]]:
        """The refusal by the first lock of somebody alive, else what takes their locks from the others."""
        lost: list[Draft] = []
        for owner in sorted((one for one in records.tasks.values() if one is not None), key=lambda one: one.id):
            for lock in owner.locks:
                if lock.run_id == lease.run_id or not self._excludes(lock, paths):
                    continue
                if lock_alive(records, owner, lock, now):
                    return locked_by(owner, lock, paths), ()
                lost.append(unlocked(owner, (lock,), "holder_lost"))
        return None, tuple(lost)

    def _excludes(self, lock: FileLock, paths: tuple[str, ...]) -> bool:
        together = lock.mode == self.mode == "shared"
        return not together and any(overlap(lock.path, path) for path in paths)

    def _refused(self, task: Task, lease: Lease, taken: FileLocked) -> Draft:
        payload = {"paths": list(self.paths), "mode": self.mode, "agent": lease.agent, "reason": taken.code}
        held = {name: taken.details[name] for name in ("path", "holder", "holder_task", "holder_run")}
        return Draft(type="file.refused", task_id=task.id, run_id=lease.run_id, payload=payload | {"held": held})


class UnlockFiles(OwnRule, frozen=True, kw_only=True):
    """Give back locks of a run: those on these paths, or all; what it does not hold is left alone."""

    paths: tuple[str, ...] = ()

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task only: nobody gives back another's lock."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Drop the locks of the caller's own run."""
        task, paths = subject_task(records, self), normalised_all(self.paths) if self.paths else ()
        if isinstance(task, AofError):
            return task
        if isinstance(paths, AofError):
            return paths
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        own = tuple(lock for lock in task.locks if lock.run_id == lease.run_id and (not paths or lock.path in paths))
        drafts = (unlocked(task, own, "released"),) if own else ()
        return Decision(drafts=drafts, agent=lease.agent)


def normalised_all(paths: tuple[str, ...]) -> tuple[str, ...] | AofError:
    """Each path in its one spelling, once."""
    if not paths:
        return InvalidInput("'paths' must name at least one file", "name what the run will write, such as src/api.py")
    if len(paths) > kernel_limits.ITEMS:
        return PayloadTooLarge(
            f"'paths' has {len(paths)} items, the limit is {kernel_limits.ITEMS}", "lock their folder"
        )
    found: dict[str, None] = {}
    for path in paths:
        one = normalised("paths", path)
        if isinstance(one, AofError):
            return one
        found[one] = None
    return tuple(found)


def _full(task: Task, paths: tuple[str, ...], lease: Lease) -> PayloadTooLarge | None:
    spelled = sum(len(lock.path.encode()) + len(lock.agent) + len(lock.run_id) + 100 for lock in task.locks)
    spelled += sum(len(path.encode()) + len(lease.agent) + len(lease.run_id) + 100 for path in paths)
    if spelled <= _BYTES:
        return None
    return PayloadTooLarge(f"{task.id} would hold too many locks", "lock the folder that they are in instead")


def lock_alive(records: Records, owner: Task, lock: FileLock, now: int) -> bool:
    """Whether the run that holds the lock still has its lease, by its last sign of life."""
    for place, lease in held_leases(owner):
        if lease.run_id == lock.run_id:
            return lease_end(lease, records.heartbeats[place]) > now
    return False


def unlocked(owner: Task, locks: tuple[FileLock, ...], reason: str) -> Draft:
    """The event that ends locks of one run."""
    payload = {"paths": [lock.path for lock in locks], "agent": locks[0].agent, "reason": reason}
    return Draft(type="file.unlocked", task_id=owner.id, run_id=locks[0].run_id, payload=payload)


def locked_by(owner: Task, lock: FileLock, paths: tuple[str, ...]) -> FileLocked:
    """The refusal that says who holds what, and since when."""
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


def may_write(task: Task, run: str, path: str) -> bool:
    """Whether the run has an exclusive lock on the path, or on a folder above it."""
    return any(lock.run_id == run and lock.mode == "exclusive" and covers(lock.path, path) for lock in task.locks)


def lock_required(task: Task, path: str) -> LockRequired:
    """The refusal of a write without a lock."""
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


class Place(msgspec.Struct, frozen=True):
    """Where something is written to the context: from which task, in the record of which topmost one, and by whom."""

    task: Task
    top: Task
    by: Writer


class OnContext(OwnRule, frozen=True, kw_only=True):
    """A command on the context of the tree that a task belongs to."""

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task and all above it; the topmost is written."""
        own = frozenset({self.task_id})
        chain = (self.task_id, *known.above.get(self.task_id, ()))
        return Needs(write=frozenset({chain[-1]}), read=frozenset(chain[:-1]), above=own)

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """Find out who writes, then what."""
        task = subject_task(records, self)
        if isinstance(task, AofError):
            return task
        top = top_of(records, task)
        if top.archived:
            return InvalidTransition(f"{top.id} is archived, and its context with it", "create a new task")
        by = writer(records, task, self)
        return by if isinstance(by, AofError) else self.written(records, Place(task, top, by), now)

    def written(self, records: Records, at: Place, now: int) -> Verdict:
        """What the command records in the context of the topmost task."""
        raise NotImplementedError


class SetContext(OnContext, frozen=True, kw_only=True):
    """Write variables, from the version that the writer has read; or say which of two conflicting writes holds."""

    variables: dict[str, Any] = msgspec.field(default_factory=dict)
    scope: str | None = None
    base: int | None = None
    conflicts: str | None = None

    def written(self, records: Records, at: Place, now: int) -> Verdict:  # noqa: ARG002 - the contract's form
        """All of the variables that may be written; the first refusal is answered, and every one recorded."""
        task, top, by = at.task, at.top, at.by
        if len(self.variables) > kernel_limits.ITEMS or not (self.variables or self.conflicts):
            return InvalidInput("'variables' must name between 1 and 50 variables", "set fewer at once")
        rule: tuple[Draft, ...] = ()
        if self.conflicts is not None:
            if problem := kernel_limits.choice("conflicts", self.conflicts, CONFLICT_RULES) or _not_orchestrator(by):
                return problem
            if self.conflicts != context_of(top).rule:
                rule = (Draft(type="context.rule", task_id=top.id, payload={"rule": self.conflicts}),)
        writes = tuple(
            Write(name=name, value=value, scope=self.scope, base=self.base) for name, value in self.variables.items()
        )
        result = write(top, writes, writer=by, task_id=task.id)
        refusal = next(iter(result.refusals), None)
        return Decision(drafts=(*rule, *result.drafts), agent=by.agent, refusal=refusal)


def _not_orchestrator(by: Writer) -> NotAllowed | None:
    if by.steers:
        return None
    return NotAllowed(
        f"{by.agent} may not say which of two conflicting writes holds",
        "leave it to the orchestrator, a lead or a maintainer",
        agent=by.agent,
    )


class RecordArtifact(OnContext, frozen=True, kw_only=True):
    """Record something that was made in the workflow, or the new status of what is recorded already."""

    path: str
    type: str | None = None
    status: str | None = None
    description: str | None = None

    def written(self, records: Records, at: Place, now: int) -> Verdict:  # noqa: ARG002 - the contract's form
        """A known artifact keeps all that identifies it; one that is superseded makes way for another."""
        task, top, by = at.task, at.top, at.by
        context = context_of(top)
        known = next((one for one in context.artifacts[::-1] if one.path == self.path), None)
        if known is not None and known.status == "superseded" and self.status != "superseded":
            known = None
        if refusal := self._malformed(known) or self._unlocked(task, by):
            return refusal
        run = next((lease.run_id for lease in leases(task) if lease.agent == by.agent), None)
        artifact = known or RecordedArtifact(
            id=_uuid(f"{top.id}/{top.rev}/{self.path}"),
            type=self.type or "file",  # type: ignore[arg-type] # judged above
            path=self.path,
            created_by=by.agent,
            created_at=iso(now),
            description=(self.description or "").strip(),
            task_id=task.id,
            run_id=run,
        )
        artifact = msgspec.structs.replace(artifact, status=self.status or artifact.status)
        if artifact == known:
            return Decision(agent=by.agent)
        others = tuple(one for one in context.artifacts if one.id != artifact.id)
        after = msgspec.structs.replace(context, artifacts=(*others, artifact))
        payload = {"artifact": msgspec.to_builtins(artifact)}
        drafts = (Draft(type="context.artifact", task_id=top.id, payload=payload),)
        return oversize(top, after) or Decision(drafts=drafts, agent=by.agent)

    def _malformed(self, known: RecordedArtifact | None) -> AofError | None:
        problem = (
            bad_reference("path", self.path)
            or (kernel_limits.choice("type", self.type, ARTIFACT_TYPES) if self.type is not None else None)
            or (kernel_limits.choice("status", self.status, ARTIFACT_STATUSES) if self.status is not None else None)
            or kernel_limits.text("description", self.description, kernel_limits.PROGRESS)
        )
        if problem is not None or known is None:
            return problem
        if self.type in (None, known.type) and self.description in (None, known.description):
            return None
        return InvalidInput(
            f"'{self.path[:80]}' is recorded already, and keeps its type and description",
            "change its status only, or mark it as superseded and record it anew",
        )

    def _unlocked(self, task: Task, by: Writer) -> LockRequired | None:
        """To report a file of the project, a run must hold its lock; what lies in the task's own folder needs none."""
        run = next((lease.run_id for lease in leases(task) if lease.agent == by.agent), None)
        if run is None or is_uri(self.path) or self.path.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("path", self.path)
        return None if isinstance(path, AofError) or may_write(task, run, path) else lock_required(task, path)


def _uuid(name: str) -> str:
    """The UUID (version 8) of a name: the same name has the same one, and no two artifacts of a tree share a name."""
    digits = hexdigest(name.encode())
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def artifact_of(top: Task, path: str) -> Artifact | None:
    """The artifact that was recorded last under a path."""
    return next((reference(one) for one in context_of(top).artifacts[::-1] if one.path == path), None)


_START: Final = "start"
_MINUTE: Final = 60_000
_MOST: Final = 2**53


class Preflight(OwnRule, frozen=True, kw_only=True):
    """Ask whether the acting agent may begin the task, or whether its run may go on at one enforcement point."""

    point: str | None = None
    subject: str | None = None
    amount: int | None = None
    risk: str | None = None

    def needs(self, known: Records, needs: NeedsOf) -> Needs:  # noqa: ARG002 - the contract's form
        """The task: the answer is recorded on it."""
        return Needs(write=frozenset({self.task_id}))

    def decide(self, records: Records, now: int, decide: Decide) -> Verdict:  # noqa: ARG002 - the contract's form
        """The ruling, as an event: also one that blocks is an answer."""
        task = subject_task(records, self)
        if isinstance(task, AofError):
            return task
        if problem := self._malformed(task):
            return problem
        if self.point is None:
            return self._before_work(records, task)
        lease = holding(task, self)
        if isinstance(lease, AofError):
            return lease
        agent = entry(records, lease.agent)
        action = AskedAction(point=self.point, subject=self.subject, amount=self._amount(task, lease, now))  # type: ignore[arg-type] # judged above
        risky = self._too_risky(agent)
        ruled = risky or ruling(agent, action, tool_calls=tool_calls(task, lease), unlocked=self._unlocked(task, lease))
        return _answer(task, lease.agent, told(ruled, lease.agent, action), lease.run_id)

    def _malformed(self, task: Task) -> AofError | None:
        if self.point is not None and (problem := kernel_limits.choice("point", self.point, POINTS)):
            return problem
        if self.risk is not None and (problem := kernel_limits.choice("risk", self.risk, RISKS)):
            return problem
        if self.amount is not None and not 0 <= self.amount <= _MOST:
            return InvalidInput("'amount' must be a whole number from 0 up", "say how much will have been used in all")
        if self.point in ACCESSES and self.subject is None:
            return InvalidInput(
                f"'{self.point}' needs a subject: a path, a command or a host",
                "say what it is about",
                Call("preflight", {"task_id": task.id, "point": self.point, "subject": "src/api.py"}),
            )
        return kernel_limits.text("subject", self.subject, kernel_limits.NOTES)

    def _amount(self, task: Task, lease: Lease, now: int) -> int | None:
        """What the caller says, or what AOF knows if that is more."""
        known = {
            "iterations": iterations(task),
            "duration": -(-(now - millis(lease.acquired_at)) // _MINUTE),
        }.get(self.point or "")
        return self.amount if known is None else max(known, self.amount or 0)

    def _unlocked(self, task: Task, lease: Lease) -> str | None:
        """Why the run may not write the path now; what lies in the task's own folder needs no lock."""
        if self.point != "write" or self.subject is None or self.subject.startswith(tuple(ARTIFACT_PATHS.values())):
            return None
        path = normalised("subject", self.subject)
        if isinstance(path, AofError) or may_write(task, lease.run_id, path):
            return None
        return lock_required(task, path).message

    def _too_risky(self, agent: Agent) -> Ruling | None:
        why = too_little(agent, level=None, risk=_risk(self.risk)) if self.risk is not None else None
        if why is None or self.point is None:
            return None
        reason = f"{agent.id}: {why}; escalate it"
        return Ruling(outcome="blocked", point=self.point, stage="limits", reason=reason)

    def _before_work(self, records: Records, task: Task) -> Verdict:
        """Whether the agent may take the task: what a claim would refuse, and what it should know beforehand."""
        name = self.acting
        ruled = _begin(records, task, name, _risk(self.risk))
        return _answer(task, name, told(ruled, name, AskedAction(point="iterations")), None)


def _begin(records: Records, task: Task, name: str, risk: Risk | None) -> Ruling:
    chart, agent = records.policy.org, entry(records, name)
    work = work_of(task.routing, task.profile)
    refused = routing.routing_refusal(chart, work, name) if chart is not None and name in chart.by_id else None
    why = refused or too_little(agent, level=work.level, risk=risk or work.risk)
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


def _risk(said: str | None) -> Risk | None:
    return next((risk for risk in RISKS if risk == said), None)


def tool_calls(task: Task, lease: Lease) -> int:
    """How many the run has asked for and was let do."""
    used = task.usage.get("toolCalls", 0) if task.usage.get("runId") == lease.run_id else 0
    return int(used)


def _answer(task: Task, agent: str, payload: dict[str, Any], run: str | None) -> Decision:
    return Decision(drafts=(Draft(type="autonomy.checked", task_id=task.id, run_id=run, payload=payload),), agent=agent)
